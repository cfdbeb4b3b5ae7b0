// mode: read
// params: tenant_id: str, sees: dict, ids: list[str], as_of_us: int, most: int
// returns: rows: list[dict]
// scope: tenant
// Whole units with what they cannot stand without: what they depend on, the call of a result, the results of a call, who replaced them; and of those again all but what they depend on. In one round trip, since one for each edge cost more than the walk (docs/benchmarks.md). `$most` bounds each level.
// A unit keeps the newest eight that replaced it, whoever may see them; where there are eight, the edges are asked for those that this caller may see, and only there: the embedded engine walks all edges of a hub to find those of one type.
// Each level is gathered inside its own subquery: then no list is a grouping key, which would be compared row by row, nor collected row by row: Neo4j refused a walk that did that with a transient error.
// All rows come in one record: one by one they cost the service four times the processor time (docs/benchmarks.md).
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})
WHERE VISIBLE(u) AND u.recorded_us <= $as_of_us
WITH collect(u) AS asked
WITH asked, asked AS first
CALL (asked, first) {
  UNWIND first AS x
  CALL (x) {
    MATCH (x)-[r:DEPENDENCY|CAUSATION]->(y:ContextUnit)
    WHERE y.tenant_id = $tenant_id AND VISIBLE(y) AND y.recorded_us <= $as_of_us
      AND (type(r) = 'DEPENDENCY' OR x.kind = 'tool_result')
    RETURN y
    UNION ALL
    UNWIND coalesce(x.superseder_ids, []) + coalesce(x.result_ids, []) AS other
    MATCH (y:ContextUnit {tenant_id: $tenant_id, id: other})
    WHERE VISIBLE(y) AND y.recorded_us <= $as_of_us
    RETURN y
    UNION ALL
    WITH x WHERE size(coalesce(x.superseder_ids, [])) >= 8
    MATCH (x)<-[:SUPERSESSION]-(y:ContextUnit)
    WHERE y.tenant_id = $tenant_id AND VISIBLE(y) AND y.recorded_us <= $as_of_us AND y.epistemic_status <> 'retracted'
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
    WHERE y.tenant_id = $tenant_id AND VISIBLE(y) AND y.recorded_us <= $as_of_us
      AND x.kind = 'tool_result'
    RETURN y
    UNION ALL
    UNWIND coalesce(x.superseder_ids, []) + coalesce(x.result_ids, []) AS other
    MATCH (y:ContextUnit {tenant_id: $tenant_id, id: other})
    WHERE VISIBLE(y) AND y.recorded_us <= $as_of_us
    RETURN y
    UNION ALL
    WITH x WHERE size(coalesce(x.superseder_ids, [])) >= 8
    MATCH (x)<-[:SUPERSESSION]-(y:ContextUnit)
    WHERE y.tenant_id = $tenant_id AND VISIBLE(y) AND y.recorded_us <= $as_of_us AND y.epistemic_status <> 'retracted'
    RETURN y LIMIT 8
  }
  WITH known, y WHERE NOT y IN known
  RETURN collect(DISTINCT y)[..$most] AS deciding
}
WITH known + deciding AS known
UNWIND known AS u
RETURN collect({id: u.id, kind: u.kind, content: u.content, timestamp: toString(u.timestamp), timestamp_given: u.timestamp_given,
         recorded_at: toString(u.recorded_at), agent_id: u.agent_id, actor: u.actor, session_id: u.session_id, model: u.model,
         task_id: u.task_id, task_step: u.task_step, epistemic_status: u.epistemic_status, provenance: u.provenance,
         relevance_score: u.relevance_score, tier: u.tier, tool_name: u.tool_name, tool_call_id: u.tool_call_id,
         tool_arguments: u.tool_arguments, organization_id: u.organization_id, assessment_id: u.assessment_id, trust: u.trust,
         labels: u.labels, attachments: u.attachments, tenant_id: u.tenant_id, content_tokens: u.content_tokens,
         superseder_ids: coalesce(u.superseder_ids, []) + CASE WHEN size(coalesce(u.superseder_ids, [])) < 8 THEN [] ELSE
           [(u)<-[:SUPERSESSION]-(z:ContextUnit) WHERE z.tenant_id = $tenant_id AND VISIBLE(z)
             AND z.recorded_us <= $as_of_us AND z.epistemic_status <> 'retracted' | z.id][..8] END,
         result_ids: coalesce(u.result_ids, []), source_erased: coalesce(u.source_erased, false),
         relations: [(u)-[r:DEPENDENCY|PROVENANCE|SUPERSESSION|CAUSATION]->(v:ContextUnit) WHERE v.tenant_id = $tenant_id AND VISIBLE(v) | [type(r), v.id]]}) AS rows
