// mode: write
// params: tenant_id: str, key_id: str, revoked_at: str
// returns: id: str
// scope: tenant
// Revoked at once; the first revocation's time stays.
MATCH (k:ApiKey {tenant_id: $tenant_id, id: $key_id})
SET k.revoked_at = coalesce(k.revoked_at, datetime($revoked_at))
RETURN k.id AS id
