// mode: write
// params: tenant_id: str, task_id: str, session_id: str, agent_id: str, rows: list[dict], causation: list, dependency: list, provenance: list, supersession: list
// returns: written: int
// scope: tenant
// A whole run at once, for benchmarks: edges name their ends by position among the new units, so that no index is asked. Leaves what the service's own writes leave.
UNWIND $rows AS row
CREATE (u:ContextUnit {tenant_id: $tenant_id, id: row.id})
SET u += row.properties, u.timestamp = datetime(row.timestamp), u.recorded_at = datetime(row.recorded_at)
WITH collect(u) AS units
CALL (units) {
  MERGE (s:Session {tenant_id: $tenant_id, id: $session_id})
  MERGE (t:Task {tenant_id: $tenant_id, id: $task_id})
  WITH s, t, units
  UNWIND units AS u
  CREATE (u)-[:IN_SESSION]->(s)
  CREATE (u)-[:IN_TASK]->(t)
  RETURN count(u) AS linked
}
CALL (units) {
  UNWIND $causation AS edge
  WITH units[edge[0]] AS a, units[edge[1]] AS b
  CREATE (a)-[:CAUSATION]->(b)
  RETURN count(a) AS caused
}
CALL (units) {
  UNWIND $dependency AS edge
  WITH units[edge[0]] AS a, units[edge[1]] AS b
  CREATE (a)-[:DEPENDENCY]->(b)
  RETURN count(a) AS needed
}
CALL (units) {
  UNWIND $provenance AS edge
  WITH units[edge[0]] AS a, units[edge[1]] AS b
  CREATE (a)-[:PROVENANCE]->(b)
  RETURN count(a) AS made
}
CALL (units) {
  UNWIND $supersession AS edge
  WITH units[edge[0]] AS a, units[edge[1]] AS b
  CREATE (a)-[:SUPERSESSION]->(b)
  RETURN count(a) AS replaced
}
MERGE (g:Agent {tenant_id: $tenant_id, id: $agent_id})
RETURN size(units) AS written
