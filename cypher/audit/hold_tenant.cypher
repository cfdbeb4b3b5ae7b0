// mode: write
// params: tenant_id: str
// returns: erasing: bool
// scope: tenant
// First statement of a write that changes no answer: it queues behind the tenant's other writers and leaves the epoch, so caches stay.
// Who waited here while the tenant was deleted holds a node that is gone, with no properties: hence the look at the epoch.
MATCH (t:Tenant {tenant_id: $tenant_id})
SET t.held = coalesce(t.held, 0) + 1
WITH t.epoch AS epoch, t.erasing_since IS NOT NULL AS erasing
WHERE epoch IS NOT NULL
RETURN erasing
