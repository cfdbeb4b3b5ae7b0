// mode: write
// params: tenant_id: str, key: str, sha256: str, properties: dict
// returns: key: str
// scope: tenant
// Room for an original whose bytes are about to be put in place; under the tenant's lock.
MERGE (a:Attachment {tenant_id: $tenant_id, sha256: $sha256})
CREATE (o:Original {tenant_id: $tenant_id, key: $key})
SET o += $properties
CREATE (o)-[:HOLDS]->(a)
RETURN o.key AS key
