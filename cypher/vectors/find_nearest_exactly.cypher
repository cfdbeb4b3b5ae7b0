// mode: read
// params: tenant_id: str, sees: dict, text_index: str, query: str, most: int, vector: list[float], model: str, task_id: str, step: int, as_of_us: int, kinds: list[str], limit: int
// returns: rows: list[dict], looked_at: int
// scope: tenant
// The nearest of all units that the caller may see, compared one by one, if they are no more than $most; with more, nothing is compared and one more than $most was looked at. Who may see a unit is a clause of $query, so neither a large tenant beside nor what others own in this one costs anything; the condition here has the last word. Cold units are compared too: they only left the index.
CALL db.index.fulltext.queryNodes($text_index, $query, {limit: $most + 1}) YIELD node AS u
WITH collect(u) AS found
CALL (found) {
  UNWIND CASE WHEN size(found) > $most THEN [] ELSE found END AS u
  WITH u
  WHERE u.tenant_id = $tenant_id AND VISIBLE(u) AND coalesce(u.embedding_model, u.cold_embedding_model) = $model AND u.recorded_us <= $as_of_us AND u.kind IN $kinds
    AND (coalesce(u.task_id, '') <> $task_id OR coalesce(u.task_step, 0) <= $step)
  WITH u, vector.similarity.cosine(coalesce(u.embedding, u.cold_embedding), $vector) AS similarity
  ORDER BY similarity DESC, u.id LIMIT $limit
  RETURN collect({id: u.id, kind: u.kind, trust: u.trust, epistemic_status: u.epistemic_status, agent_id: u.agent_id, actor: u.actor,
    timestamp: toString(u.timestamp), task_id: u.task_id, task_step: u.task_step, tool_name: u.tool_name, content_tokens: u.content_tokens,
    superseder_ids: coalesce(u.superseder_ids, []), result_ids: coalesce(u.result_ids, []), session_id: u.session_id,
    session_place: u.session_place, terms: u.search_text, asks: u.asks, similarity: similarity}) AS rows
}
RETURN rows, size(found) AS looked_at
