// mode: read
// params: tenant_id: str, key: str
// returns: state: str, bytes: int, media_type: str
// scope: tenant
// One original by its key, under the tenant's lock.
MATCH (o:Original {tenant_id: $tenant_id, key: $key})
RETURN o.state AS state, o.bytes AS bytes, o.media_type AS media_type
