// mode: write
// params: tenant_id: str, erasure_id: str, limit: int
// returns: id: str, edge_type: str
// scope: tenant
// Some of the edges to what is erased: each is removed, and the unit it came from is marked in its stead. Again until no row comes.
MATCH (e:Erasure {tenant_id: $tenant_id, id: $erasure_id})-[:ERASES]->(u:ContextUnit)
WHERE u.tenant_id = $tenant_id
MATCH (u)<-[r:DEPENDENCY|PROVENANCE|SUPERSESSION|CAUSATION]-(v:ContextUnit)
WHERE v.tenant_id = $tenant_id
WITH r, v, type(r) AS edge_type LIMIT $limit
SET v.source_erased = true
DELETE r
RETURN v.id AS id, edge_type
