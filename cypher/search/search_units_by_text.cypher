// mode: read
// params: tenant_id: str, sees: dict, index: str, query: str, task_id: str, step: int, as_of_us: int, kinds: list[str], limit: int
// returns: rows: list[dict], looked_at: int
// scope: tenant
// Units that hold some of a question's words, best first by the index, with the words themselves: how well they match is told by ours, so that it is the same on every engine and no other tenant's text moves it. Tenant and who may see a unit are clauses of $query, so the cut at $limit counts only what the caller may see; the conditions here have the last word.
CALL db.index.fulltext.queryNodes($index, $query, {limit: $limit}) YIELD node AS u, score
WITH collect(u) AS found
WITH found, [u IN found WHERE u.tenant_id = $tenant_id AND VISIBLE(u) AND u.recorded_us <= $as_of_us AND u.kind IN $kinds
  AND (coalesce(u.task_id, '') <> $task_id OR coalesce(u.task_step, 0) <= $step)] AS seen
RETURN [u IN seen | {id: u.id, kind: u.kind, trust: u.trust, epistemic_status: u.epistemic_status, agent_id: u.agent_id, actor: u.actor,
  timestamp: toString(u.timestamp), task_id: u.task_id, task_step: u.task_step, tool_name: u.tool_name, content_tokens: u.content_tokens,
  superseder_ids: coalesce(u.superseder_ids, []), result_ids: coalesce(u.result_ids, []), session_id: u.session_id,
  session_place: u.session_place, terms: u.search_text, asks: u.asks}] AS rows, size(found) AS looked_at
