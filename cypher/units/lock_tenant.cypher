// mode: write
// params: tenant_id: str
// returns: epoch: int, tombstones: bool, erasing: bool
// scope: tenant
// First statement of every write: writers of one tenant queue here instead of losing updates, and caches see the new epoch. It also tells what writers must know of erasures.
// Who waited here while the tenant was deleted holds a node that is gone, with no properties: hence the look at the epoch.
MATCH (t:Tenant {tenant_id: $tenant_id})
SET t.epoch = coalesce(t.epoch, 0) + 1
WITH t.epoch AS epoch, coalesce(t.has_tombstones, false) AS tombstones, t.erasing_since IS NOT NULL AS erasing
WHERE epoch IS NOT NULL
RETURN epoch, tombstones, erasing
