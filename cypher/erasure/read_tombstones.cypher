// mode: read
// params: tenant_id: str, hashes: list[str]
// returns: id: str, erasure_id: str
// scope: tenant
// Which of these keyed hashes are of something that was erased. Asked only in a tenant that has tombstones.
UNWIND $hashes AS hash
MATCH (t:Tombstone {tenant_id: $tenant_id, id: hash})
RETURN t.id AS id, t.erasure_id AS erasure_id
