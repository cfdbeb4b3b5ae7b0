// mode: read
// params: tenant_id: str, sees: dict, seeds: list[dict], task_id: str, step: int, as_of_us: int, weights: dict, decay: float, fan: int, sample: int, looked_at: int, width: int, limit: int
// returns: rows: list[dict]
// scope: tenant
// Three weighted hops from the seeds in one round trip, without any text. Each neighbourhood is cut inside its own subquery: at most `$looked_at` edges are looked at, of which `$sample` that the caller may see are read at a hub and the newest `$fan` of them kept; `$width` units go on to the next hop. What flows back from a unit is diluted by how many depend on it, so that a hub does not pull in everything; and what nothing but a hub beside the way leads to is not walked on from, since any of its thousands could stand there.
// Each hop is gathered inside its own subquery: an empty frontier then loses nothing, and no list of units is a grouping key, which the embedded engine compared row by row (docs/benchmarks.md).
// All rows come in one record: one by one they cost the service four times the processor time (docs/benchmarks.md).
UNWIND $seeds AS seed
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: seed.id})
WHERE VISIBLE(u) AND u.recorded_us <= $as_of_us
WITH collect({unit: u, activation: seed.activation, via: null, sampled: false}) AS hop0, collect(u) AS visited
CALL (hop0, visited) {
  UNWIND hop0 AS front
  WITH visited, front.unit AS x, front.activation AS reach
  CALL (x) {
    MATCH (x)-[r:DEPENDENCY|PROVENANCE|SUPERSESSION|CAUSATION]->(y:ContextUnit)
    WHERE y.tenant_id = $tenant_id AND VISIBLE(y) AND y.recorded_us <= $as_of_us
      AND (coalesce(y.task_id, '') <> $task_id OR coalesce(y.task_step, 0) <= $step)
    RETURN y, 'out' AS direction, type(r) AS edge_type, 1.0 AS dilution, false AS sampled LIMIT $fan
    UNION ALL
    MATCH (x)<-[r:DEPENDENCY|PROVENANCE|SUPERSESSION|CAUSATION]-(y:ContextUnit)
    WHERE y.tenant_id = $tenant_id
    WITH y, r LIMIT $looked_at
    WHERE VISIBLE(y) AND y.recorded_us <= $as_of_us
      AND (coalesce(y.task_id, '') <> $task_id OR coalesce(y.task_step, 0) <= $step)
    WITH y, type(r) AS edge_type LIMIT $sample
    WITH collect({unit: y, edge_type: edge_type}) AS seen
    UNWIND seen AS near
    WITH near.unit AS y, near.edge_type AS edge_type, 1.0 / sqrt(size(seen)) AS dilution, size(seen) >= $sample AS sampled
    ORDER BY y.timestamp DESC, y.id DESC LIMIT $fan
    RETURN y, 'in' AS direction, edge_type, dilution, sampled
  }
  WITH visited, y, sampled, x.id AS from_id, direction, edge_type, reach * $weights[direction][edge_type] * $decay * dilution AS share
  WHERE NOT y IN visited
  WITH y, sum(share) AS activation, max([share, from_id, direction, edge_type]) AS via, max(sampled) AS sampled
  ORDER BY activation DESC, y.id LIMIT $width
  RETURN collect({unit: y, activation: activation, via: via, sampled: sampled}) AS hop1
}
WITH hop0, hop1, visited + [reached IN hop1 | reached.unit] AS visited
CALL (hop1, visited) {
  UNWIND hop1 AS front
  WITH visited, front.unit AS x, front.activation AS reach
  CALL (x) {
    MATCH (x)-[r:DEPENDENCY|PROVENANCE|SUPERSESSION|CAUSATION]->(y:ContextUnit)
    WHERE y.tenant_id = $tenant_id AND VISIBLE(y) AND y.recorded_us <= $as_of_us
      AND (coalesce(y.task_id, '') <> $task_id OR coalesce(y.task_step, 0) <= $step)
    RETURN y, 'out' AS direction, type(r) AS edge_type, 1.0 AS dilution, false AS sampled LIMIT $fan
    UNION ALL
    MATCH (x)<-[r:DEPENDENCY|PROVENANCE|SUPERSESSION|CAUSATION]-(y:ContextUnit)
    WHERE y.tenant_id = $tenant_id
    WITH y, r LIMIT $looked_at
    WHERE VISIBLE(y) AND y.recorded_us <= $as_of_us
      AND (coalesce(y.task_id, '') <> $task_id OR coalesce(y.task_step, 0) <= $step)
    WITH y, type(r) AS edge_type LIMIT $sample
    WITH collect({unit: y, edge_type: edge_type}) AS seen
    UNWIND seen AS near
    WITH near.unit AS y, near.edge_type AS edge_type, 1.0 / sqrt(size(seen)) AS dilution, size(seen) >= $sample AS sampled
    ORDER BY y.timestamp DESC, y.id DESC LIMIT $fan
    RETURN y, 'in' AS direction, edge_type, dilution, sampled
  }
  WITH visited, y, sampled, x.id AS from_id, direction, edge_type, reach * $weights[direction][edge_type] * $decay * dilution AS share
  WHERE NOT y IN visited
  WITH y, sum(share) AS activation, max([share, from_id, direction, edge_type]) AS via, max(sampled) AS sampled, min(sampled) AS only_by_hub
  ORDER BY activation DESC, y.id LIMIT $width
  RETURN collect({unit: y, activation: activation, via: via, sampled: sampled, only_by_hub: only_by_hub}) AS hop2
}
WITH hop0, hop1, hop2, visited + [reached IN hop2 | reached.unit] AS visited
CALL (hop2, visited) {
  UNWIND [found IN hop2 WHERE NOT found.only_by_hub] AS front
  WITH visited, front.unit AS x, front.activation AS reach
  CALL (x) {
    MATCH (x)-[r:DEPENDENCY|PROVENANCE|SUPERSESSION|CAUSATION]->(y:ContextUnit)
    WHERE y.tenant_id = $tenant_id AND VISIBLE(y) AND y.recorded_us <= $as_of_us
      AND (coalesce(y.task_id, '') <> $task_id OR coalesce(y.task_step, 0) <= $step)
    RETURN y, 'out' AS direction, type(r) AS edge_type, 1.0 AS dilution, false AS sampled LIMIT $fan
    UNION ALL
    MATCH (x)<-[r:DEPENDENCY|PROVENANCE|SUPERSESSION|CAUSATION]-(y:ContextUnit)
    WHERE y.tenant_id = $tenant_id
    WITH y, r LIMIT $looked_at
    WHERE VISIBLE(y) AND y.recorded_us <= $as_of_us
      AND (coalesce(y.task_id, '') <> $task_id OR coalesce(y.task_step, 0) <= $step)
    WITH y, type(r) AS edge_type LIMIT $sample
    WITH collect({unit: y, edge_type: edge_type}) AS seen
    UNWIND seen AS near
    WITH near.unit AS y, near.edge_type AS edge_type, 1.0 / sqrt(size(seen)) AS dilution, size(seen) >= $sample AS sampled
    ORDER BY y.timestamp DESC, y.id DESC LIMIT $fan
    RETURN y, 'in' AS direction, edge_type, dilution, sampled
  }
  WITH visited, y, sampled, x.id AS from_id, direction, edge_type, reach * $weights[direction][edge_type] * $decay * dilution AS share
  WHERE NOT y IN visited
  WITH y, sum(share) AS activation, max([share, from_id, direction, edge_type]) AS via, max(sampled) AS sampled
  ORDER BY activation DESC, y.id LIMIT $width
  RETURN collect({unit: y, activation: activation, via: via, sampled: sampled}) AS hop3
}
UNWIND hop0 + hop1 + hop2 + hop3 AS reached
WITH reached.unit AS u, reached.activation AS activation, reached.via AS via, reached.sampled AS sampled
ORDER BY activation DESC, u.id LIMIT $limit
RETURN collect({id: u.id, kind: u.kind, trust: u.trust, epistemic_status: u.epistemic_status, agent_id: u.agent_id, actor: u.actor,
         timestamp: toString(u.timestamp), task_id: u.task_id, task_step: u.task_step, tool_name: u.tool_name,
         content_tokens: u.content_tokens, superseder_ids: coalesce(u.superseder_ids, []), result_ids: coalesce(u.result_ids, []),
         activation: activation, via: via, sampled: sampled}) AS rows
