// mode: write
// params: tenant_id: str, sessions: list[dict]
// returns: id: str, places: int
// scope: tenant
// Before a batch: how many places each of its sessions has given away, these included. Under the tenant's lock, so that no two units get one.
UNWIND $sessions AS session
MERGE (s:Session {tenant_id: $tenant_id, id: session.id})
SET s.places = coalesce(s.places, 0) + session.count
RETURN s.id AS id, s.places AS places
