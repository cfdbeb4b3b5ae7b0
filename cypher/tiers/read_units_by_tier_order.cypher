// mode: read
// params: tenant_id: str, sees: dict, from_key: str, to_key: str, as_of_us: int, limit: int
// returns: rows: list[dict]
// scope: tenant
// A session's hot units, newest first, then its warm ones, then its cold ones: one range of keys, read backwards in index order.
// All rows come in one record: one by one they cost the service several times the processor time (docs/benchmarks.md).
MATCH (u:ContextUnit {tenant_id: $tenant_id})
WHERE u.tier_order >= $from_key AND u.tier_order < $to_key AND VISIBLE(u) AND u.recorded_us <= $as_of_us
WITH u ORDER BY u.tier_order DESC LIMIT $limit
RETURN collect({id: u.id, kind: u.kind, trust: u.trust, epistemic_status: u.epistemic_status, agent_id: u.agent_id, actor: u.actor,
  timestamp: toString(u.timestamp), task_id: u.task_id, task_step: u.task_step, tool_name: u.tool_name,
  content_tokens: u.content_tokens, superseder_ids: coalesce(u.superseder_ids, []), result_ids: coalesce(u.result_ids, []),
  tier: u.tier}) AS rows
