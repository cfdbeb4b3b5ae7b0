// mode: read
// params: tenant_id: str, scope_keys: list[str], ids: list[str], as_of_us: int, most: int
// returns: id: str, kind: str, content: str, timestamp: str, timestamp_given: bool, recorded_at: str, agent_id: str, actor: str, session_id: str, model: str, task_id: str, task_step: int, epistemic_status: str, provenance: str, relevance_score: float, tier: str, tool_name: str, tool_call_id: str, tool_arguments: str, organization_id: str, assessment_id: str, trust: str, labels: list[str], attachments: str, tenant_id: str, content_tokens: int, superseder_ids: list[str], result_ids: list[str], relations: list[list[str]]
// scope: tenant
// Whole units with what they cannot stand without: what they depend on, the call of a result, the results of a call, who replaced them; and of those again all but what they depend on. In one round trip, since one for each edge cost more than the walk (docs/benchmarks.md). `$most` bounds each level.
// A unit keeps the newest eight that replaced it, whoever may see them; where there are eight, the edges are asked for those that this caller may see.
// Each level is gathered inside its own subquery: then no list is a grouping key, which would be compared row by row, nor collected row by row, which ran Neo4j out of memory.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})
WHERE u.scope_key IN $scope_keys AND u.recorded_us <= $as_of_us
WITH collect(u) AS asked
WITH asked, asked AS first
CALL (asked, first) {
  UNWIND first AS x
  CALL (x) {
    MATCH (x)-[r:DEPENDENCY|CAUSATION]->(y:ContextUnit)
    WHERE y.tenant_id = $tenant_id AND y.scope_key IN $scope_keys AND y.recorded_us <= $as_of_us
      AND (type(r) = 'DEPENDENCY' OR x.kind = 'tool_result')
    RETURN y
    UNION ALL
    UNWIND coalesce(x.superseder_ids, []) + coalesce(x.result_ids, []) AS other
    MATCH (y:ContextUnit {tenant_id: $tenant_id, id: other})
    WHERE y.scope_key IN $scope_keys AND y.recorded_us <= $as_of_us
    RETURN y
    UNION ALL
    MATCH (x)<-[:SUPERSESSION]-(y:ContextUnit)
    WHERE size(coalesce(x.superseder_ids, [])) >= 8 AND y.tenant_id = $tenant_id AND y.scope_key IN $scope_keys
      AND y.recorded_us <= $as_of_us AND y.epistemic_status <> 'retracted'
    RETURN y LIMIT 8
  }
  WITH asked, y WHERE NOT y IN asked
  RETURN collect(DISTINCT y)[..$most] AS needed
}
WITH asked + needed AS known, needed
CALL (known, needed) {
  UNWIND needed AS x
  CALL (x) {
    MATCH (x)-[r:CAUSATION]->(y:ContextUnit)
    WHERE y.tenant_id = $tenant_id AND y.scope_key IN $scope_keys AND y.recorded_us <= $as_of_us
      AND x.kind = 'tool_result'
    RETURN y
    UNION ALL
    UNWIND coalesce(x.superseder_ids, []) + coalesce(x.result_ids, []) AS other
    MATCH (y:ContextUnit {tenant_id: $tenant_id, id: other})
    WHERE y.scope_key IN $scope_keys AND y.recorded_us <= $as_of_us
    RETURN y
    UNION ALL
    MATCH (x)<-[:SUPERSESSION]-(y:ContextUnit)
    WHERE size(coalesce(x.superseder_ids, [])) >= 8 AND y.tenant_id = $tenant_id AND y.scope_key IN $scope_keys
      AND y.recorded_us <= $as_of_us AND y.epistemic_status <> 'retracted'
    RETURN y LIMIT 8
  }
  WITH known, y WHERE NOT y IN known
  RETURN collect(DISTINCT y)[..$most] AS deciding
}
WITH known + deciding AS known
UNWIND known AS u
RETURN u.id AS id, u.kind AS kind, u.content AS content, toString(u.timestamp) AS timestamp, u.timestamp_given AS timestamp_given,
       toString(u.recorded_at) AS recorded_at, u.agent_id AS agent_id, u.actor AS actor, u.session_id AS session_id, u.model AS model,
       u.task_id AS task_id, u.task_step AS task_step, u.epistemic_status AS epistemic_status, u.provenance AS provenance,
       u.relevance_score AS relevance_score, u.tier AS tier, u.tool_name AS tool_name, u.tool_call_id AS tool_call_id,
       u.tool_arguments AS tool_arguments, u.organization_id AS organization_id, u.assessment_id AS assessment_id, u.trust AS trust,
       u.labels AS labels, u.attachments AS attachments, u.tenant_id AS tenant_id, u.content_tokens AS content_tokens,
       coalesce(u.superseder_ids, []) + [(z:ContextUnit)-[:SUPERSESSION]->(u) WHERE size(coalesce(u.superseder_ids, [])) >= 8
         AND z.tenant_id = $tenant_id AND z.scope_key IN $scope_keys AND z.recorded_us <= $as_of_us AND z.epistemic_status <> 'retracted' | z.id][..8] AS superseder_ids, coalesce(u.result_ids, []) AS result_ids,
       [(u)-[r:DEPENDENCY|PROVENANCE|SUPERSESSION|CAUSATION]->(v:ContextUnit) WHERE v.tenant_id = $tenant_id AND v.scope_key IN $scope_keys | [type(r), v.id]] AS relations
