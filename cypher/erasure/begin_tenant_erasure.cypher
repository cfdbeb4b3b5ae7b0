// mode: write
// params: tenant_id: str, at: str
// returns: since: str
// scope: tenant
// From here on the tenant's writes are refused; the mark stays until everything is gone. A node that was deleted meanwhile has no properties.
MATCH (t:Tenant {tenant_id: $tenant_id})
SET t.erasing_since = coalesce(t.erasing_since, $at), t.epoch = coalesce(t.epoch, 0) + 1
WITH t.erasing_since AS since
WHERE since IS NOT NULL
RETURN since
