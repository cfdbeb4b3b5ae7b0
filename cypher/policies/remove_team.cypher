// mode: write
// params: tenant_id: str, id: str
// returns: removed: int
// scope: tenant
// A team that is no more.
MATCH (t:Team {tenant_id: $tenant_id, id: $id})
WITH t, 1 AS one
DELETE t
RETURN count(one) AS removed
