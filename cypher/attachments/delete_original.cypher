// mode: write
// params: tenant_id: str, key: str
// returns: deleted: int
// scope: tenant
// An original whose bytes are gone; the digest goes with it when no unit names it and nothing else is stored of it.
MATCH (o:Original {tenant_id: $tenant_id, key: $key})-[:HOLDS]->(a:Attachment {tenant_id: $tenant_id})
DETACH DELETE o
WITH DISTINCT a
WHERE NOT EXISTS { MATCH (a)<-[:ATTACHES]-(:ContextUnit {tenant_id: $tenant_id}) }
  AND NOT EXISTS { MATCH (a)<-[:HOLDS]-(:Original {tenant_id: $tenant_id}) }
DETACH DELETE a
RETURN count(*) AS deleted
