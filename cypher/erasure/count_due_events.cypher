// mode: read
// params: tenant_id: str, from_key: str, to_key: str
// returns: due: int
// scope: tenant
// Events of the audit trail over their time.
MATCH (e:Event {tenant_id: $tenant_id})
WHERE e.event_order >= $from_key AND e.event_order < $to_key
RETURN count(e) AS due
