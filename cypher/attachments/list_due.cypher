// mode: read
// params: before_us: int, limit: int
// returns: tenant_id: str, key: str
// scope: exempt: keys of originals that nobody names, of whatever tenant; the background job removes each within its tenant's scope
// Originals whose time is up: doomed ones, and those that were stored long ago and that no unit ever named.
MATCH (o:Original)
WHERE o.due_us >= 0 AND o.due_us < $before_us
RETURN o.tenant_id AS tenant_id, o.key AS key
LIMIT $limit
