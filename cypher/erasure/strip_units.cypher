// mode: write
// params: tenant_id: str, erasure_id: str, rows: list[dict]
// returns: stripped: int
// scope: tenant
// Everything of a unit goes at once, its place in every index and its id too; a shell without a name stays until the edges to it are gone.
MATCH (e:Erasure {tenant_id: $tenant_id, id: $erasure_id})
UNWIND $rows AS row
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: row.id})
SET u = {tenant_id: $tenant_id, id: row.shell_id}
CREATE (e)-[:ERASES]->(u)
RETURN count(u) AS stripped
