// mode: write
// params: tenant_id: str, key: str
// returns: key: str
// scope: tenant
// The bytes are in place.
MATCH (o:Original {tenant_id: $tenant_id, key: $key})
WHERE o.state <> 'doomed'
SET o.state = 'stored'
RETURN o.key AS key
