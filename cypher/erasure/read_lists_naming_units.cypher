// mode: read
// params: tenant_id: str, ids: list[str]
// returns: id: str, superseder_ids: list[str], result_ids: list[str]
// scope: tenant
// The units whose lists of superseders and results name these: what they replaced, and the calls they answered.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})-[:SUPERSESSION|CAUSATION]->(v:ContextUnit)
WHERE v.tenant_id = $tenant_id AND NOT v.id IN $ids
RETURN DISTINCT v.id AS id, coalesce(v.superseder_ids, []) AS superseder_ids, coalesce(v.result_ids, []) AS result_ids
