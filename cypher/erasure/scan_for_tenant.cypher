// mode: read
// params: tenant_id: str
// returns: found: int
// scope: tenant
// A look at every node of the database for the tenant's name, for the certificate.
MATCH (n)
WHERE n.tenant_id = $tenant_id
RETURN count(n) AS found
