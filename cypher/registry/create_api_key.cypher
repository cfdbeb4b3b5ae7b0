// mode: write
// params: tenant_id: str, key_id: str, secret_hash: str, agent_id: str, role: str, organization_id: str, assessment_id: str, created_at: str, expires_at: str
// returns: id: str
// scope: tenant
// A key is stored by the hash of its secret; the secret itself is shown once and never kept.
MERGE (k:ApiKey {tenant_id: $tenant_id, id: $key_id})
ON CREATE SET k.secret_hash = $secret_hash, k.agent_id = $agent_id, k.role = $role, k.organization_id = $organization_id,
  k.assessment_id = $assessment_id, k.created_at = datetime($created_at), k.expires_at = datetime($expires_at)
RETURN k.id AS id
