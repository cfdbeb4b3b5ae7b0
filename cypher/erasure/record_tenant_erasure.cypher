// mode: write
// params: tenant_id: str, counts: str
// returns: counts: str
// scope: tenant
// What was deleted so far, in the transaction that deleted it.
MATCH (t:Tenant {tenant_id: $tenant_id})
SET t.erasure_counts = $counts
RETURN t.erasure_counts AS counts
