// mode: read
// params: tenant_id: str, limit: int
// returns: key: str
// scope: tenant
// Originals of a tenant that are being removed.
MATCH (o:Original {tenant_id: $tenant_id})
WHERE o.due_us >= 0 AND o.due_us < 1
RETURN o.key AS key
LIMIT $limit
