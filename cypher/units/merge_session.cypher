// mode: write
// params: tenant_id: str, session_id: str, agent_id: str, unit_ids: list[str]
// returns: linked: int
// scope: tenant
// Ownership an analyst can walk: units stand in a session, the session belongs to an agent. It is marked for the job that keeps its tiers small.
MERGE (a:Agent {tenant_id: $tenant_id, id: $agent_id})
MERGE (s:Session {tenant_id: $tenant_id, id: $session_id})
MERGE (s)-[:OF_AGENT]->(a)
SET s.tiers_since_ms = coalesce(s.tiers_since_ms, timestamp())
WITH s
UNWIND $unit_ids AS unit_id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: unit_id})
CREATE (u)-[:IN_SESSION]->(s)
RETURN count(u) AS linked
