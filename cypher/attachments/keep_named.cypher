// mode: write
// params: tenant_id: str, ids: list[str]
// returns: kept: int
// scope: tenant
// Originals that new units open stay from now on; those that are being removed are not called back.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})-[:ATTACHES]->(a:Attachment {tenant_id: $tenant_id})<-[:HOLDS]-(o:Original {tenant_id: $tenant_id})
WHERE o.state = 'stored' AND o.scope_key = u.scope_key AND o.agent_id = u.agent_id
REMOVE o.due_us
RETURN count(o) AS kept
