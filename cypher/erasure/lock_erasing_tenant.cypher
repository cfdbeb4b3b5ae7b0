// mode: write
// params: tenant_id: str
// returns: since: str, counts: str
// scope: tenant
// First statement of every step of a tenant's erasure: steps of two processes queue here, and each adds to what was counted before.
// Who waited here while the other took the last step holds a node that is gone, with no properties: hence the second look.
MATCH (t:Tenant {tenant_id: $tenant_id})
WHERE t.erasing_since IS NOT NULL
SET t.epoch = coalesce(t.epoch, 0) + 1
WITH t.erasing_since AS since, coalesce(t.erasure_counts, '{}') AS counts
WHERE since IS NOT NULL
RETURN since, counts
