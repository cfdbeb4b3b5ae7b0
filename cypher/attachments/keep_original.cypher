// mode: write
// params: tenant_id: str, key: str
// returns: kept: int
// scope: tenant
// An original that a unit named before its bytes came stays from now on.
MATCH (o:Original {tenant_id: $tenant_id, key: $key})
REMOVE o.due_us
RETURN count(o) AS kept
