// mode: write
// params: tenant_id: str, from_key: str, to_key: str, limit: int
// returns: deleted: int
// scope: tenant
// Some of the events over their time; that it was done is an event itself.
MATCH (e:Event {tenant_id: $tenant_id})
WHERE e.event_order >= $from_key AND e.event_order < $to_key
WITH e LIMIT $limit
DETACH DELETE e
RETURN count(*) AS deleted
