// mode: write
// params: tenant_id: str, session_ids: list[str]
// returns: marked: int
// scope: tenant
// The job is to look at these sessions; one that waits already keeps its place. Writers set the same mark in `units/merge_session`.
UNWIND $session_ids AS session_id
MATCH (s:Session {tenant_id: $tenant_id, id: session_id})
SET s.tiers_since_ms = coalesce(s.tiers_since_ms, timestamp())
RETURN count(s) AS marked
