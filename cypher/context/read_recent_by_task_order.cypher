// mode: read
// params: tenant_id: str, sees: dict, from_key: str, to_key: str, as_of_us: int, limit: int
// returns: rows: list[dict]
// scope: tenant
// The newest units between two keys of task_order, read backwards in index order: the recency strategy, and the seeds of a task.
// All rows come in one record: one by one they cost the service several times the processor time (docs/benchmarks.md).
MATCH (u:ContextUnit {tenant_id: $tenant_id})
WHERE u.task_order >= $from_key AND u.task_order < $to_key AND VISIBLE(u) AND u.recorded_us <= $as_of_us
WITH u ORDER BY u.task_order DESC LIMIT $limit
RETURN collect({id: u.id, kind: u.kind, trust: u.trust, epistemic_status: u.epistemic_status, agent_id: u.agent_id, actor: u.actor,
  timestamp: toString(u.timestamp), task_id: u.task_id, task_step: u.task_step, tool_name: u.tool_name,
  content_tokens: u.content_tokens, superseder_ids: coalesce(u.superseder_ids, []), result_ids: coalesce(u.result_ids, [])}) AS rows
