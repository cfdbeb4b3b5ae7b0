// mode: write
// params: tenant_id: str, task_id: str, unit_ids: list[str]
// returns: bound: int
// scope: tenant
// A task's constraints of authority are found on an edge of their own, so that no number of agents' constraints stands before them.
MATCH (t:Task {tenant_id: $tenant_id, id: $task_id})
UNWIND $unit_ids AS unit_id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: unit_id})
CREATE (u)-[:GOVERNS]->(t)
RETURN count(u) AS bound
