// mode: read
// params: tenant_id: str, key: str
// returns: namers: int
// scope: tenant
// Units that name an original and may open it: of the agent that stored it, in its place.
MATCH (o:Original {tenant_id: $tenant_id, key: $key})-[:HOLDS]->(a:Attachment {tenant_id: $tenant_id})<-[:ATTACHES]-(u:ContextUnit {tenant_id: $tenant_id})
WHERE u.scope_key = o.scope_key AND u.agent_id = o.agent_id
WITH u LIMIT 1
RETURN count(u) AS namers
