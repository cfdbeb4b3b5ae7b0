// mode: write
// params: tenant_id: str, rows: list[dict], erasure_id: str, at: str
// returns: kept: int
// scope: tenant
// What stays of erased units: keyed hashes, which refuse the same id and value. The tenant's mark tells writers that there are some.
MATCH (tenant:Tenant {tenant_id: $tenant_id})
SET tenant.has_tombstones = true
WITH tenant
UNWIND $rows AS row
MERGE (t:Tombstone {tenant_id: $tenant_id, id: row.id})
ON CREATE SET t.of = row.of, t.erased_at = datetime($at)
SET t.erasure_id = $erasure_id
RETURN count(t) AS kept
