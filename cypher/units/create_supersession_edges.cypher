// mode: write
// params: tenant_id: str, edges: list[dict]
// returns: written: int
// scope: tenant
// As the other edges; the replaced unit also keeps who replaced it (the newest eight), so that a read need not look back along every edge.
UNWIND $edges AS edge
MATCH (source:ContextUnit {tenant_id: $tenant_id, id: edge.source_id})
MATCH (target:ContextUnit {tenant_id: $tenant_id, id: edge.target_id})
CREATE (source)-[:SUPERSESSION]->(target)
SET target.superseder_ids = (coalesce(target.superseder_ids, []) + edge.source_id)[-8..]
RETURN count(target) AS written
