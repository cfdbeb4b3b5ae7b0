// mode: write
// params: tenant_id: str, key: str
// returns: key: str
// scope: tenant
// The subject has no limits any more; its counters stay.
MATCH (q:Quota {tenant_id: $tenant_id, key: $key})
WITH q, q.key AS key
DETACH DELETE q
RETURN key AS key
