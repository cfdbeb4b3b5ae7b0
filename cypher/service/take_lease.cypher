// mode: write
// params: job: str, holder: str, now_ms: int, until_ms: int
// returns: done_ms: int
// scope: exempt: one node for each background job, no tenant's data
// A job that never ran is due after its first interval.
// One replica at a time runs a job; a row comes back only to the one that got the lease, which ends by itself if its holder dies.
MERGE (l:Lease {id: $job})
ON CREATE SET l.holder = '', l.held_until_ms = 0, l.done_ms = $now_ms
SET l.attempts = coalesce(l.attempts, 0) + 1
WITH l
WHERE l.held_until_ms < $now_ms OR l.holder = $holder
SET l.holder = $holder, l.held_until_ms = $until_ms
RETURN l.done_ms AS done_ms
