// mode: write
// params: tenant_id: str, erasure_id: str
// returns: deleted: int
// scope: tenant
// Nothing points to the erased units any more, so their nodes go.
MATCH (e:Erasure {tenant_id: $tenant_id, id: $erasure_id})-[:ERASES]->(u:ContextUnit)
WHERE u.tenant_id = $tenant_id
DETACH DELETE u
RETURN count(*) AS deleted
