// mode: write
// params: tenant_id: str
// returns: tenant_id: str
// scope: tenant
// The guard node that a tenant's writes lock; made with its first key. Its epoch begins with the time, so that no tenant of the same name before it had that number.
MERGE (t:Tenant {tenant_id: $tenant_id})
ON CREATE SET t.epoch = timestamp()
RETURN t.tenant_id AS tenant_id
