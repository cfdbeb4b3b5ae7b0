// mode: read
// params: tenant_id: str, from_key: str, to_key: str, limit: int
// returns: key: str, type: str, name: str, units: int, bytes: int
// scope: tenant
// A page of those who use the tenant's store, with what they hold of it.
MATCH (s:Subject {tenant_id: $tenant_id})
WHERE s.key >= $from_key AND s.key < $to_key
WITH s ORDER BY s.key LIMIT $limit
RETURN s.key AS key, s.type AS type, s.name AS name, s.units AS units, s.bytes AS bytes
