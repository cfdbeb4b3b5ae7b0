// mode: read
// params: tenant_id: str, from_key: str, to_key: str, looked_at: int, most: int
// returns: agent_id: str, units: int
// scope: tenant
// Agents with more units in one tier of a session than it is to hold. Counted by agent, so that nobody pushes another's units down. What goes no further down does not count.
MATCH (u:ContextUnit {tenant_id: $tenant_id})
WHERE u.tier_order >= $from_key AND u.tier_order < $to_key AND u.tier_age IS NOT NULL
WITH u ORDER BY u.tier_order DESC LIMIT $looked_at
WITH u.agent_id AS agent_id, count(u) AS units
WHERE units > $most
RETURN agent_id, units
