// mode: read
// params: record_id: str
// returns: since: str, ended_at: str, counts: str
// scope: exempt: counts of what was erased under a keyed hash of the tenant's name; nothing else of the tenant is there any more
// What was kept of a tenant's erasure.
MATCH (r:ErasureRecord {id: $record_id})
RETURN r.since AS since, r.ended_at AS ended_at, r.counts AS counts
