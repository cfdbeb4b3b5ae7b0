// mode: write
// params: tenant_id: str, retention: str
// returns: retention: str
// scope: tenant
// The tenant's rules of retention, whole.
MATCH (t:Tenant {tenant_id: $tenant_id})
SET t.retention = $retention
RETURN t.retention AS retention
