// mode: read
// params: tenant_id: str, from_key: str, to_key: str, agent_id: str, session_id: str, task_id: str, model: str, by_agent: bool, by_session: bool, by_task: bool, by_model: bool, hours: int, after_starts: int, after_agent: str, after_session: str, after_task: str, after_model: str, limit: int
// returns: starts: int, agent: str, session: str, task: str, model: str, answers: int, cache_hits: int, fallbacks: int, tokens_asked: int, tokens_spent: int, tokens_left_out: int
// scope: tenant
// What answers cost, summed over replicas and over everything that is not asked for apart; of one agent alone, and of its session and of
// what has none, where these are named, and so for task and model.
MATCH (l:LedgerEntry {tenant_id: $tenant_id})
WHERE l.key >= $from_key AND l.key < $to_key
  AND ($agent_id = '' OR (l.agent_id = $agent_id AND ($session_id = '' OR l.session_id IN ['', $session_id])))
  AND ($task_id = '' OR l.task_id = $task_id) AND ($model = '' OR l.model = $model)
WITH l.hour / $hours * $hours AS starts,
     CASE WHEN $by_agent THEN l.agent_id ELSE '' END AS agent, CASE WHEN $by_session THEN l.session_id ELSE '' END AS session,
     CASE WHEN $by_task THEN l.task_id ELSE '' END AS task, CASE WHEN $by_model THEN l.model ELSE '' END AS model, l
WITH starts, agent, session, task, model, sum(l.answers) AS answers, sum(l.cache_hits) AS cache_hits, sum(l.fallbacks) AS fallbacks,
     sum(l.tokens_asked) AS tokens_asked, sum(l.tokens_spent) AS tokens_spent, sum(l.tokens_left_out) AS tokens_left_out
WHERE starts > $after_starts OR (starts = $after_starts AND (agent > $after_agent OR (agent = $after_agent AND (session > $after_session
  OR (session = $after_session AND (task > $after_task OR (task = $after_task AND model > $after_model)))))))
RETURN starts AS starts, agent AS agent, session AS session, task AS task, model AS model, answers AS answers, cache_hits AS cache_hits,
       fallbacks AS fallbacks, tokens_asked AS tokens_asked, tokens_spent AS tokens_spent, tokens_left_out AS tokens_left_out
ORDER BY starts, agent, session, task, model LIMIT $limit
