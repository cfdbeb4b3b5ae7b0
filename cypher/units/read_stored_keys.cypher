// mode: read
// params: tenant_id: str, sees: dict, ids: list[str]
// returns: id: str, digest: str, timestamp_given: bool, trust: str, kind: str, has_tool: bool, source_erased: bool, visible: bool, agent_id: str
// scope: tenant
// Before a write, under the tenant's lock: which of the batch's ids and targets exist, and whether the writer may know.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})
RETURN u.id AS id, u.digest AS digest, u.timestamp_given AS timestamp_given, u.trust AS trust, u.kind AS kind,
       u.tool_name IS NOT NULL AS has_tool, coalesce(u.source_erased, false) AS source_erased,
       coalesce(VISIBLE(u), false) AS visible, u.agent_id AS agent_id
