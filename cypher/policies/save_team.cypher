// mode: write
// params: tenant_id: str, id: str, agents: list[str]
// returns: id: str
// scope: tenant
// A team as it is from now on.
MERGE (t:Team {tenant_id: $tenant_id, id: $id})
SET t.agents = $agents
RETURN t.id AS id
