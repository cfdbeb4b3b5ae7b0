// mode: read
// params: tenant_id: str, unit_id: str, ids: list[str]
// returns: id: str
// scope: tenant
// The newest eight that replaced a unit, without those that go: where its list was full, one that had no place in it moves up.
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: $unit_id})<-[:SUPERSESSION]-(v:ContextUnit)
WHERE v.tenant_id = $tenant_id AND NOT v.id IN $ids AND v.recorded_us IS NOT NULL
WITH v ORDER BY v.recorded_us DESC, v.id DESC LIMIT 8
RETURN v.id AS id
