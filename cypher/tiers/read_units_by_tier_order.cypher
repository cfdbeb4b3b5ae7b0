// mode: read
// params: tenant_id: str, sees: dict, from_key: str, to_key: str, as_of_us: int, limit: int
// returns: id: str, kind: str, trust: str, epistemic_status: str, agent_id: str, actor: str, timestamp: str, task_id: str, task_step: int, tool_name: str, content_tokens: int, superseder_ids: list[str], result_ids: list[str], tier: str
// scope: tenant
// A session's hot units, newest first, then its warm ones, then its cold ones: one range of keys, read backwards in index order.
MATCH (u:ContextUnit {tenant_id: $tenant_id})
WHERE u.tier_order >= $from_key AND u.tier_order < $to_key AND VISIBLE(u) AND u.recorded_us <= $as_of_us
WITH u ORDER BY u.tier_order DESC LIMIT $limit
RETURN u.id AS id, u.kind AS kind, u.trust AS trust, u.epistemic_status AS epistemic_status, u.agent_id AS agent_id, u.actor AS actor,
       toString(u.timestamp) AS timestamp, u.task_id AS task_id, u.task_step AS task_step, u.tool_name AS tool_name,
       u.content_tokens AS content_tokens, coalesce(u.superseder_ids, []) AS superseder_ids, coalesce(u.result_ids, []) AS result_ids,
       u.tier AS tier
