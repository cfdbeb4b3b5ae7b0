// mode: read
// params: tenant_id: str
// returns: id: str, agents: list[str]
// scope: tenant
// The teams of a tenant.
MATCH (t:Team {tenant_id: $tenant_id})
RETURN t.id AS id, t.agents AS agents ORDER BY t.id
