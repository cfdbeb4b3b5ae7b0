// mode: read
// params: key_id: str
// returns: id: str, tenant_id: str, secret_hash: str, agent_id: str, role: str, organization_id: str, assessment_id: str, expires_at: datetime, revoked_at: datetime, policy_epoch: int, epoch: int
// scope: exempt: identification comes before any tenant is known; the key's public id decides the tenant
// Who is asking. Read on every request, so that a revoked key stops at once on every replica, and so do what a revoked policy opened and
// answers that were made before the tenant's last change.
MATCH (k:ApiKey {id: $key_id})
MATCH (t:Tenant {tenant_id: k.tenant_id})
RETURN k.id AS id, k.tenant_id AS tenant_id, k.secret_hash AS secret_hash, k.agent_id AS agent_id, k.role AS role,
       k.organization_id AS organization_id, k.assessment_id AS assessment_id, k.expires_at AS expires_at, k.revoked_at AS revoked_at,
       coalesce(t.policy_epoch, 0) AS policy_epoch, coalesce(t.epoch, 0) AS epoch
