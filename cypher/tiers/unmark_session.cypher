// mode: write
// params: tenant_id: str, session_id: str
// returns: id: str
// scope: tenant
// First statement of a look at a session: who writes to it meanwhile waits here or is tried again, and marks it anew.
MATCH (s:Session {tenant_id: $tenant_id, id: $session_id})
SET s.tiers_since_ms = null
RETURN s.id AS id
