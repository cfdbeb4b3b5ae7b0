// mode: write
// params: tenant_id: str, key_id: str, replaced_by: str, expires_at: str
// returns: id: str
// scope: tenant
// A key that another one replaces ends after the overlap, and says which one it is.
MATCH (k:ApiKey {tenant_id: $tenant_id, id: $key_id})
SET k.replaced_by = $replaced_by, k.expires_at = datetime($expires_at)
RETURN k.id AS id
