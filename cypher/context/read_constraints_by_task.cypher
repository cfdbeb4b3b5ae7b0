// mode: read
// params: tenant_id: str, sees: dict, task_id: str, step: int, as_of_us: int, sample: int, limit: int
// returns: rows: list[dict]
// scope: tenant
// What constrains a task, however long ago it was said; bounded, newest first.
// All rows come in one record: one by one they cost the service several times the processor time (docs/benchmarks.md).
MATCH (t:Task {tenant_id: $tenant_id, id: $task_id})<-[:CONSTRAINS]-(u:ContextUnit {tenant_id: $tenant_id})
WHERE VISIBLE(u) AND u.recorded_us <= $as_of_us AND coalesce(u.task_step, 0) <= $step
WITH u LIMIT $sample
WITH u ORDER BY u.recorded_us DESC, u.id DESC LIMIT $limit
RETURN collect({id: u.id, kind: u.kind, trust: u.trust, epistemic_status: u.epistemic_status, agent_id: u.agent_id, actor: u.actor,
  timestamp: toString(u.timestamp), task_id: u.task_id, task_step: u.task_step, tool_name: u.tool_name,
  content_tokens: u.content_tokens, superseder_ids: coalesce(u.superseder_ids, []), result_ids: coalesce(u.result_ids, [])}) AS rows
