// mode: read
// params: tenant_id: str
// returns: id: str, body: str, created_by: str, created_at: str, revoked_at: str
// scope: tenant
// Every policy of a tenant, for people.
MATCH (p:Policy {tenant_id: $tenant_id})
RETURN p.id AS id, p.body AS body, p.created_by AS created_by, p.created_at AS created_at, p.revoked_at AS revoked_at
ORDER BY p.created_at DESC, p.id
