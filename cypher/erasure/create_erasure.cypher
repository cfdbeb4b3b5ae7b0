// mode: write
// params: tenant_id: str, erasure_id: str, at: str
// returns: id: str
// scope: tenant
// Holds what an erasure still has to do, so that another process can go on with it; deleted when all is done.
MERGE (e:Erasure {tenant_id: $tenant_id, id: $erasure_id})
ON CREATE SET e.began_at = datetime($at)
RETURN e.id AS id
