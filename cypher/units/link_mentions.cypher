// mode: write
// params: tenant_id: str, rows: list[dict]
// returns: linked: int
// scope: tenant
// The names that new units mention, one node for each name of the tenant: units that nobody linked meet there.
UNWIND $rows AS row
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: row.id})
UNWIND row.keys AS key
MERGE (e:Entity {tenant_id: $tenant_id, id: key})
CREATE (u)-[:MENTIONS]->(e)
RETURN count(*) AS linked
