// mode: write
// params: record_id: str, since: str, ended_at: str, counts: str
// returns: id: str
// scope: exempt: counts of what was erased under a keyed hash of the tenant's name; nothing else of the tenant is there any more
// Lets the certificate be asked for again when its first answer was lost.
MERGE (r:ErasureRecord {id: $record_id})
SET r.since = $since, r.ended_at = $ended_at, r.counts = $counts
RETURN r.id AS id
