// mode: read
// params: tenant_id: str
// returns: policy_epoch: int, epoch: int
// scope: tenant
// Whether policies or teams have changed, and whether anything has; for callers that come without an API key, whose reading tells it.
MATCH (t:Tenant {tenant_id: $tenant_id})
RETURN coalesce(t.policy_epoch, 0) AS policy_epoch, coalesce(t.epoch, 0) AS epoch
