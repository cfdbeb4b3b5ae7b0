// mode: read
// params: tenant_id: str, sees: dict, ids: list[str], fan: int
// returns: from_id: str, edge_type: str, id: str
// scope: tenant
// One step of a lineage: the units right before each of these. The bound keeps a hub from being read whole.
UNWIND $ids AS id
MATCH (x:ContextUnit {tenant_id: $tenant_id, id: id})
WHERE VISIBLE(x)
CALL (x) {
  MATCH (x)-[r:DEPENDENCY|PROVENANCE|SUPERSESSION|CAUSATION]->(y:ContextUnit)
  WHERE y.tenant_id = $tenant_id AND VISIBLE(y)
  RETURN y, type(r) AS edge_type LIMIT $fan
}
RETURN x.id AS from_id, edge_type, y.id AS id
