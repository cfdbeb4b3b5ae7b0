// mode: write
// params: tenant_id: str
// returns: epoch: int
// scope: tenant
// Policies, teams or grants of the tenant have changed: what replicas hold in memory of them is told to be old by this number.
// It begins with the time: a tenant that is made anew after its erasure must not come upon a number that replicas remember.
MATCH (t:Tenant {tenant_id: $tenant_id})
SET t.policy_epoch = coalesce(t.policy_epoch, timestamp()) + 1
RETURN t.policy_epoch AS epoch
