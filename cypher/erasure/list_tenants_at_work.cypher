// mode: read
// params:
// returns: tenant_id: str, erasing: bool
// scope: exempt: names of tenants for the background job, which goes on within each tenant's own scope
// Tenants with rules of retention, and tenants whose erasure is not through.
MATCH (t:Tenant)
WHERE t.tenant_id > '' AND (t.retention IS NOT NULL OR t.erasing_since IS NOT NULL)
RETURN t.tenant_id AS tenant_id, t.erasing_since IS NOT NULL AS erasing
