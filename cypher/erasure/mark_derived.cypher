// mode: write
// params: tenant_id: str, ids: list[str], limit: int
// returns: id: str
// scope: tenant
// One step along PROVENANCE: what was made from these and is not marked yet. What is marked already spreads by itself.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})<-[:PROVENANCE]-(v:ContextUnit)
WHERE v.tenant_id = $tenant_id AND coalesce(v.source_erased, false) = false
WITH DISTINCT v LIMIT $limit
SET v.source_erased = true
RETURN v.id AS id
