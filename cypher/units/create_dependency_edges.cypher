// mode: write
// params: tenant_id: str, edges: list[dict]
// returns: written: int
// scope: tenant
// Edges are written with their unit, to targets that were found in the same transaction; Cypher takes no edge type as a parameter.
UNWIND $edges AS edge
MATCH (source:ContextUnit {tenant_id: $tenant_id, id: edge.source_id})
MATCH (target:ContextUnit {tenant_id: $tenant_id, id: edge.target_id})
CREATE (source)-[:DEPENDENCY]->(target)
RETURN count(target) AS written
