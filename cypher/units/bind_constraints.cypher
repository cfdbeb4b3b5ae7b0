// mode: write
// params: tenant_id: str, task_id: str, unit_ids: list[str]
// returns: bound: int
// scope: tenant
// What constrains a task matters at each of its steps however old it is, so it is one hop from the task.
MATCH (t:Task {tenant_id: $tenant_id, id: $task_id})
UNWIND $unit_ids AS unit_id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: unit_id})
CREATE (u)-[:CONSTRAINS]->(t)
RETURN count(u) AS bound
