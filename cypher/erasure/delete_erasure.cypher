// mode: write
// params: tenant_id: str, erasure_id: str
// returns: deleted: int
// scope: tenant
// The erasure is through.
MATCH (e:Erasure {tenant_id: $tenant_id, id: $erasure_id})
DETACH DELETE e
RETURN count(*) AS deleted
