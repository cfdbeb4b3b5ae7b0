// mode: read
// params: tenant_id: str, sees: dict, keys: list[str], task_id: str, step: int, as_of_us: int, kinds: list[str]
// returns: rows: list[dict]
// scope: tenant
// What stands next to found units in their sessions. Places are asked for by exact keys: a range from each unit on is read to its end by the embedded engine, seconds in a large session.
UNWIND $keys AS key
MATCH (u:ContextUnit {tenant_id: $tenant_id, session_place: key})
WHERE VISIBLE(u) AND u.recorded_us <= $as_of_us AND u.kind IN $kinds
  AND (coalesce(u.task_id, '') <> $task_id OR coalesce(u.task_step, 0) <= $step)
RETURN collect({id: u.id, kind: u.kind, trust: u.trust, epistemic_status: u.epistemic_status, agent_id: u.agent_id, actor: u.actor,
  timestamp: toString(u.timestamp), task_id: u.task_id, task_step: u.task_step, tool_name: u.tool_name, content_tokens: u.content_tokens,
  superseder_ids: coalesce(u.superseder_ids, []), result_ids: coalesce(u.result_ids, []), session_id: u.session_id,
  session_place: u.session_place, terms: u.search_text, asks: u.asks}) AS rows
