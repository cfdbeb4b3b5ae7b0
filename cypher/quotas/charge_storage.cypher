// mode: write
// params: tenant_id: str, amounts: list[dict]
// returns: key: str, type: str, name: str, units: int, bytes: int, most_units: int, most_bytes: int
// scope: tenant
// Adds what a batch stores, or takes away what was erased, for all subjects at once, and tells the limits; under the tenant's lock.
UNWIND $amounts AS amount
MERGE (s:Subject {tenant_id: $tenant_id, key: amount.key})
ON CREATE SET s.type = amount.type, s.name = amount.name, s.units = 0, s.bytes = 0
SET s.units = s.units + amount.units, s.bytes = s.bytes + amount.bytes
WITH s
OPTIONAL MATCH (q:Quota {tenant_id: $tenant_id, key: s.key})
RETURN s.key AS key, s.type AS type, s.name AS name, s.units AS units, s.bytes AS bytes, q.most_units AS most_units, q.most_bytes AS most_bytes
