// mode: write
// params: tenant_id: str, ids: list[str]
// returns: released: int
// scope: tenant
// Names that erased units mention; a name that nobody else mentions goes with them.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})-[r:MENTIONS|ABOUT]->(e:Entity {tenant_id: $tenant_id})
DELETE r
WITH DISTINCT e
WHERE NOT EXISTS { MATCH (e)<-[:MENTIONS|ABOUT]-(:ContextUnit {tenant_id: $tenant_id}) }
DETACH DELETE e
RETURN count(*) AS released
