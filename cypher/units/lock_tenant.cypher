// mode: write
// params: tenant_id: str
// returns: epoch: int
// scope: tenant
// First statement of every write: writers of one tenant queue here instead of losing updates, and caches see the new epoch.
MATCH (t:Tenant {tenant_id: $tenant_id})
SET t.epoch = coalesce(t.epoch, 0) + 1
RETURN t.epoch AS epoch
