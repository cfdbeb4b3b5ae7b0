// mode: read
// params: tenant_id: str, unit_id: str, ids: list[str]
// returns: id: str
// scope: tenant
// The first eight results of a call, without those that go, as for superseders.
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: $unit_id})<-[:CAUSATION]-(v:ContextUnit)
WHERE v.tenant_id = $tenant_id AND NOT v.id IN $ids AND v.kind = 'tool_result'
WITH v ORDER BY v.recorded_us, v.id LIMIT 8
RETURN v.id AS id
