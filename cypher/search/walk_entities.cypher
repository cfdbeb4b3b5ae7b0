// mode: read
// params: tenant_id: str, sees: dict, ids: list[str], keys: list[str], task_id: str, step: int, as_of_us: int, kinds: list[str], looked_at: int, most: int
// returns: entities: list[dict], rows: list[dict]
// scope: tenant
// Over the names that units share: from found units and from the names in a question to the units that are about those names or mention them. A name that more than $most of the caller's units mention says too little and is not crossed; at most $looked_at edges of a name are looked at to tell that. How often others use a name moves nothing: only what the caller may see is counted.
CALL () {
  UNWIND $ids AS id
  MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})-[:MENTIONS|ABOUT]->(e:Entity {tenant_id: $tenant_id})
  WHERE VISIBLE(u)
  RETURN e
  UNION
  UNWIND $keys AS key
  MATCH (e:Entity {tenant_id: $tenant_id, id: key})
  RETURN e
}
CALL (e) {
  MATCH (e)<-[r:MENTIONS|ABOUT]-(y:ContextUnit)
  WHERE y.tenant_id = $tenant_id
  WITH y, type(r) AS how LIMIT $looked_at
  WHERE VISIBLE(y) AND y.recorded_us <= $as_of_us AND y.kind IN $kinds
    AND (coalesce(y.task_id, '') <> $task_id OR coalesce(y.task_step, 0) <= $step)
  WITH y, how LIMIT $most + 1
  RETURN collect({unit: y, how: how}) AS met
}
WITH e, met WHERE size(met) <= $most AND size(met) > 0
WITH collect({key: e.id, met: [m IN met | {id: m.unit.id, how: m.how}]}) AS entities, collect(met) AS lists
UNWIND CASE WHEN size(lists) = 0 THEN [[]] ELSE lists END AS list
UNWIND CASE WHEN size(list) = 0 THEN [null] ELSE list END AS one
WITH entities, collect(DISTINCT one.unit) AS units
RETURN entities, [u IN units | {id: u.id, kind: u.kind, trust: u.trust, epistemic_status: u.epistemic_status, agent_id: u.agent_id,
  actor: u.actor, timestamp: toString(u.timestamp), task_id: u.task_id, task_step: u.task_step, tool_name: u.tool_name,
  content_tokens: u.content_tokens, superseder_ids: coalesce(u.superseder_ids, []), result_ids: coalesce(u.result_ids, []),
  session_id: u.session_id, session_place: u.session_place, terms: u.search_text, asks: u.asks}] AS rows
