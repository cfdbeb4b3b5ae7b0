// mode: read
// params: tenant_id: str, from_key: str, to_key: str, agent_id: str, window: int, most: int
// returns: id: str, tier_age: str
// scope: tenant
// All but the most recently written or used of an agent's newest units in one tier of a session. Taken from a window again and again, what is left in the end are the most recently used of all.
MATCH (u:ContextUnit {tenant_id: $tenant_id})
WHERE u.tier_order >= $from_key AND u.tier_order < $to_key AND u.agent_id = $agent_id AND u.tier_age IS NOT NULL
WITH u ORDER BY u.tier_order DESC LIMIT $window
WITH u ORDER BY u.tier_age DESC SKIP $most
RETURN u.id AS id, u.tier_age AS tier_age
