// mode: write
// params: tenant_id: str
// returns: tenant_id: str
// scope: tenant
// The guard node that a tenant's writes lock; made with its first key.
MERGE (t:Tenant {tenant_id: $tenant_id})
ON CREATE SET t.epoch = 0
RETURN t.tenant_id AS tenant_id
