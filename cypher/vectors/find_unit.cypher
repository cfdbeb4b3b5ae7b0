// mode: read
// params: after_key: str
// returns: found: int
// scope: exempt: whether there is any unit, for the first start with an embedder
// Units that were written before there was an embedder wait for `lastro reembed`. The service's own tenants do not count.
MATCH (u:ContextUnit)
WHERE u.tenant_order > $after_key AND NOT u.tenant_id STARTS WITH 'lastro:'
WITH u LIMIT 1
RETURN count(u) AS found
