// mode: read
// params: tenant_id: str, scope_keys: list[str], ids: list[str]
// returns: id: str, digest: str, timestamp_given: bool, trust: str, kind: str, has_tool: bool, visible: bool
// scope: tenant
// Before a write, under the tenant's lock: which of the batch's ids and targets exist, and whether the writer may know.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})
RETURN u.id AS id, u.digest AS digest, u.timestamp_given AS timestamp_given, u.trust AS trust, u.kind AS kind,
       u.tool_name IS NOT NULL AS has_tool, u.scope_key IN $scope_keys AS visible
