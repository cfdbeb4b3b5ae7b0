// mode: read
// params: tenant_id: str, key_id: str
// returns: id: str, agent_id: str, role: str, organization_id: str, assessment_id: str, created_at: datetime, expires_at: datetime, revoked_at: datetime, replaced_by: str
// scope: tenant
// A key of the tenant as it stands, before it is changed; inside the changing transaction, behind the tenant's lock.
MATCH (k:ApiKey {tenant_id: $tenant_id, id: $key_id})
RETURN k.id AS id, k.agent_id AS agent_id, k.role AS role, k.organization_id AS organization_id, k.assessment_id AS assessment_id,
       k.created_at AS created_at, k.expires_at AS expires_at, k.revoked_at AS revoked_at, k.replaced_by AS replaced_by
