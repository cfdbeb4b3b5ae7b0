// mode: write
// params: tenant_id: str, id: str, body: str, created_by: str, created_at: str
// returns: id: str
// scope: tenant
// A policy as the JSON that was asked for: the database never looks into it, since it is compiled into what a reader sees.
MERGE (p:Policy {tenant_id: $tenant_id, id: $id})
ON CREATE SET p.body = $body, p.created_by = $created_by, p.created_at = $created_at
RETURN p.id AS id
