// mode: read
// params: tenant_id: str, actions: list[str], from_key: str, to_key: str, limit: int
// returns: id: str, event_order: str, at: str, action: str, agent_id: str, role: str, key_id: str, session_id: str, place: str, target: str, reason: str, outcome: str, numbers: str
// scope: tenant
// A page of a tenant's events, newest first; the range on the order key is read backwards in index order.
MATCH (e:Event {tenant_id: $tenant_id})
WHERE e.event_order >= $from_key AND e.event_order < $to_key AND e.action IN $actions
WITH e ORDER BY e.event_order DESC LIMIT $limit
RETURN e.id AS id, e.event_order AS event_order, toString(e.at) AS at, e.action AS action, e.agent_id AS agent_id, e.role AS role,
       e.key_id AS key_id, e.session_id AS session_id, e.place AS place, e.target AS target, e.reason AS reason, e.outcome AS outcome,
       e.numbers AS numbers
