// mode: write
// params: tenant_id: str, erasure_id: str, ids: list[str]
// returns: stopped: int
// scope: tenant
// Nothing unmarked was made from these any more.
MATCH (e:Erasure {tenant_id: $tenant_id, id: $erasure_id})-[s:SPREADS]->(v:ContextUnit)
WHERE v.tenant_id = $tenant_id AND v.id IN $ids
DELETE s
RETURN count(*) AS stopped
