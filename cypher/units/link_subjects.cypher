// mode: write
// params: tenant_id: str, rows: list[dict]
// returns: linked: int
// scope: tenant
// The names that new units are about: being about a name is more than to mention it.
UNWIND $rows AS row
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: row.id})
UNWIND row.keys AS key
MERGE (e:Entity {tenant_id: $tenant_id, id: key})
CREATE (u)-[:ABOUT]->(e)
RETURN count(*) AS linked
