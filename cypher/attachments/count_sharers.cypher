// mode: read
// params: tenant_id: str, key: str
// returns: sharers: int
// scope: tenant
// Other originals of the same bytes in the same place: they share the file.
MATCH (o:Original {tenant_id: $tenant_id, key: $key})-[:HOLDS]->(a:Attachment {tenant_id: $tenant_id})<-[:HOLDS]-(other:Original {tenant_id: $tenant_id})
WHERE other.object_key = o.object_key AND other.key <> o.key
RETURN count(other) AS sharers
