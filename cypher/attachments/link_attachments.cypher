// mode: write
// params: tenant_id: str, rows: list[dict]
// returns: linked: int
// scope: tenant
// What new units name as their attachments, one node for each digest of the tenant: units and originals meet there.
UNWIND $rows AS row
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: row.id})
UNWIND row.digests AS sha256
MERGE (a:Attachment {tenant_id: $tenant_id, sha256: sha256})
CREATE (u)-[:ATTACHES]->(a)
RETURN count(*) AS linked
