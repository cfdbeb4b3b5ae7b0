// mode: read
// params: tenant_id: str, sees: dict, sha256: str
// returns: unit_id: str, object_key: str, bytes: int, media_type: str
// scope: tenant
// An original that the caller may read: some unit that it sees names it, in the same place, and that unit's own agent stored it.
MATCH (a:Attachment {tenant_id: $tenant_id, sha256: $sha256})<-[:HOLDS]-(o:Original {tenant_id: $tenant_id})
WHERE o.state = 'stored'
MATCH (a)<-[:ATTACHES]-(u:ContextUnit {tenant_id: $tenant_id})
WHERE u.scope_key = o.scope_key AND u.agent_id = o.agent_id AND VISIBLE(u)
RETURN u.id AS unit_id, o.object_key AS object_key, o.bytes AS bytes, o.media_type AS media_type
LIMIT 1
