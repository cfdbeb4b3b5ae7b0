// mode: write
// params: tenant_id: str, task_id: str, unit_ids: list[str]
// returns: linked: int
// scope: tenant
// A task holds the units of its run, so that an analyst can open it from there.
MERGE (t:Task {tenant_id: $tenant_id, id: $task_id})
WITH t
UNWIND $unit_ids AS unit_id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: unit_id})
CREATE (u)-[:IN_TASK]->(t)
RETURN count(u) AS linked
