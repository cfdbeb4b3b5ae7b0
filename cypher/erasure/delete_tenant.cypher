// mode: write
// params: tenant_id: str
// returns: deleted: int
// scope: tenant
// The guard node, in the same transaction as the keys.
MATCH (t:Tenant {tenant_id: $tenant_id})
DETACH DELETE t
RETURN count(*) AS deleted
