// mode: read
// params: tenant_id: str, sees: dict, from_key: str, to_key: str, limit: int
// returns: id: str, kind: str, content: str, timestamp: str, timestamp_given: bool, recorded_at: str, agent_id: str, actor: str, session_id: str, model: str, task_id: str, task_step: int, epistemic_status: str, provenance: str, relevance_score: float, tier: str, tool_name: str, tool_call_id: str, tool_arguments: str, organization_id: str, assessment_id: str, trust: str, labels: list[str], attachments: str, tenant_id: str, content_tokens: int, superseder_ids: list[str], result_ids: list[str], source_erased: bool, relations: list[list[str]], order_key: str
// scope: tenant
// A page of units of a task, newest first. The range on the order key is read backwards in index order, so a page costs its own length.
MATCH (u:ContextUnit {tenant_id: $tenant_id})
WHERE u.task_order >= $from_key AND u.task_order < $to_key AND VISIBLE(u)
WITH u ORDER BY u.task_order DESC LIMIT $limit
RETURN u.id AS id, u.kind AS kind, u.content AS content, toString(u.timestamp) AS timestamp, u.timestamp_given AS timestamp_given,
       toString(u.recorded_at) AS recorded_at, u.agent_id AS agent_id, u.actor AS actor, u.session_id AS session_id, u.model AS model,
       u.task_id AS task_id, u.task_step AS task_step, u.epistemic_status AS epistemic_status, u.provenance AS provenance,
       u.relevance_score AS relevance_score, u.tier AS tier, u.tool_name AS tool_name, u.tool_call_id AS tool_call_id,
       u.tool_arguments AS tool_arguments, u.organization_id AS organization_id, u.assessment_id AS assessment_id, u.trust AS trust,
       u.labels AS labels, u.attachments AS attachments, u.tenant_id AS tenant_id, u.content_tokens AS content_tokens,
       coalesce(u.superseder_ids, []) AS superseder_ids, coalesce(u.result_ids, []) AS result_ids,
       coalesce(u.source_erased, false) AS source_erased,
       [(u)-[r:DEPENDENCY|PROVENANCE|SUPERSESSION|CAUSATION]->(v:ContextUnit) WHERE v.tenant_id = $tenant_id AND VISIBLE(v) | [type(r), v.id]] AS relations,
       u.task_order AS order_key
