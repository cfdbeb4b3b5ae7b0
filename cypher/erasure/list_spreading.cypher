// mode: read
// params: tenant_id: str, erasure_id: str, limit: int
// returns: id: str
// scope: tenant
// Some of the units that the mark has to go on from.
MATCH (e:Erasure {tenant_id: $tenant_id, id: $erasure_id})-[:SPREADS]->(v:ContextUnit)
WHERE v.tenant_id = $tenant_id
RETURN v.id AS id LIMIT $limit
