// mode: write
// params: holder: str, now_ms: int, until_ms: int
// returns: version: int
// scope: exempt: one node of the installation, no tenant's data
// One replica migrates at a time; a row comes back only to the one that got the lease, which ends by itself if its holder dies.
MATCH (s:SchemaState {id: 'lastro'})
SET s.attempts = coalesce(s.attempts, 0) + 1
WITH s
WHERE s.held_until_ms < $now_ms OR s.holder = $holder
SET s.holder = $holder, s.held_until_ms = $until_ms
RETURN s.version AS version
