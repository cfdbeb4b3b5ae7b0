// mode: read
// params: tenant_id: str
// returns: retention: str
// scope: tenant
// The tenant's rules of retention, as JSON.
MATCH (t:Tenant {tenant_id: $tenant_id})
RETURN t.retention AS retention
