// mode: write
// params: job: str, holder: str, done_ms: int
// returns: done_ms: int
// scope: exempt: one node for each background job, no tenant's data
// When the job was last through, told by the replica that did it, so that none does it again before its time.
MATCH (l:Lease {id: $job})
WHERE l.holder = $holder
SET l.done_ms = $done_ms
RETURN l.done_ms AS done_ms
