// mode: write
// params: tenant_id: str, id: str, revoked_at: str
// returns: id: str
// scope: tenant
// Revoked at once; the first revocation stays, and the policy stays readable.
MATCH (p:Policy {tenant_id: $tenant_id, id: $id})
SET p.revoked_at = coalesce(p.revoked_at, $revoked_at)
RETURN p.id AS id
