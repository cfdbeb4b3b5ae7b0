// mode: read
// params: tenant_id: str, sees: dict, task_id: str, step: int, as_of_us: int, sample: int, limit: int
// returns: id: str, kind: str, trust: str, epistemic_status: str, agent_id: str, actor: str, timestamp: str, task_id: str, task_step: int, tool_name: str, content_tokens: int, superseder_ids: list[str], result_ids: list[str]
// scope: tenant
// What constrains a task, however long ago it was said; bounded, newest first.
MATCH (t:Task {tenant_id: $tenant_id, id: $task_id})<-[:CONSTRAINS]-(u:ContextUnit {tenant_id: $tenant_id})
WHERE VISIBLE(u) AND u.recorded_us <= $as_of_us AND coalesce(u.task_step, 0) <= $step
WITH u LIMIT $sample
WITH u ORDER BY u.recorded_us DESC, u.id DESC LIMIT $limit
RETURN u.id AS id, u.kind AS kind, u.trust AS trust, u.epistemic_status AS epistemic_status, u.agent_id AS agent_id, u.actor AS actor,
       toString(u.timestamp) AS timestamp, u.task_id AS task_id, u.task_step AS task_step, u.tool_name AS tool_name,
       u.content_tokens AS content_tokens, coalesce(u.superseder_ids, []) AS superseder_ids, coalesce(u.result_ids, []) AS result_ids
