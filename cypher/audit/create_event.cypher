// mode: write
// params: tenant_id: str, id: str, event_order: str, at: str, action: str, agent_id: str, role: str, key_id: str, session_id: str, place: str, target: str, reason: str, outcome: str, numbers: str
// returns: id: str
// scope: tenant
// What was done, by whom, to what and why; created in the transaction that did it, never changed. Neither content nor a secret is in it.
CREATE (e:Event {tenant_id: $tenant_id, id: $id})
SET e.event_order = $event_order, e.at = datetime($at), e.action = $action, e.agent_id = $agent_id, e.role = $role, e.key_id = $key_id,
    e.session_id = $session_id, e.place = $place, e.target = $target, e.reason = $reason, e.outcome = $outcome, e.numbers = $numbers
RETURN e.id AS id
