// mode: write
// params: tenant_id: str, erasure_id: str, ids: list[str]
// returns: spreading: int
// scope: tenant
// Marked units that something else was made from: the mark has to go on from these.
MATCH (e:Erasure {tenant_id: $tenant_id, id: $erasure_id})
UNWIND $ids AS id
MATCH (v:ContextUnit {tenant_id: $tenant_id, id: id})
WHERE EXISTS { MATCH (v)<-[:PROVENANCE]-(w:ContextUnit) WHERE w.tenant_id = $tenant_id }
MERGE (e)-[:SPREADS]->(v)
RETURN count(v) AS spreading
