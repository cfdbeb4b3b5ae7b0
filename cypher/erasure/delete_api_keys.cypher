// mode: write
// params: tenant_id: str
// returns: deleted: int
// scope: tenant
// The last things of a tenant but its guard: while they are there, its admin can ask how far the erasure is.
MATCH (k:ApiKey {tenant_id: $tenant_id})
DETACH DELETE k
RETURN count(*) AS deleted
