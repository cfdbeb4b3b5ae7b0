// mode: write
// params: tenant_id: str, ids: list[str]
// returns: cut: int
// scope: tenant
// Erased units name nothing any more; a digest that nobody else names and of which nothing is stored goes with them.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})-[r:ATTACHES]->(a:Attachment {tenant_id: $tenant_id})
DELETE r
WITH DISTINCT a
WHERE NOT EXISTS { MATCH (a)<-[:ATTACHES]-(:ContextUnit {tenant_id: $tenant_id}) }
  AND NOT EXISTS { MATCH (a)<-[:HOLDS]-(:Original {tenant_id: $tenant_id}) }
DETACH DELETE a
RETURN count(*) AS cut
