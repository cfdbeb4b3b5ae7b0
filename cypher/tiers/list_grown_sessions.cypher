// mode: read
// params: limit: int
// returns: tenant_id: str, session_id: str
// scope: exempt: names of sessions with work for the background job, which does it within each tenant's own scope
// Sessions that were written to, or whose units were promoted, since the job looked at them; those that wait longest first.
MATCH (s:Session)
WHERE s.tiers_since_ms > 0
WITH s ORDER BY s.tiers_since_ms LIMIT $limit
RETURN s.tenant_id AS tenant_id, s.id AS session_id
