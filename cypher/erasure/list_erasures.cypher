// mode: read
// params: before: str
// returns: tenant_id: str, id: str
// scope: exempt: ids of work that was left undone, of whatever tenant; the background job goes on with it within that tenant's scope
// Erasures that began before a time and are not through: their process died or ran out of time.
MATCH (e:Erasure)
WHERE e.id > '' AND e.began_at < datetime($before)
RETURN e.tenant_id AS tenant_id, e.id AS id
