// mode: read
// params: tenant_id: str, ids: list[str]
// returns: key: str
// scope: tenant
// Originals that units about to be erased open; under the tenant's lock.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})-[:ATTACHES]->(a:Attachment {tenant_id: $tenant_id})<-[:HOLDS]-(o:Original {tenant_id: $tenant_id})
WHERE o.scope_key = u.scope_key AND o.agent_id = u.agent_id
RETURN DISTINCT o.key AS key
