// mode: read
// params: tenant_id: str, sees: dict, ids: list[str]
// returns: id: str, agent_id: str, session_id: str, team_ids: list[str], content: str, tool_arguments: str, trust: str, scope_key: str
// scope: tenant
// Under the tenant's lock: the units that a caller wants erased and may see, with what their tombstones are made from and what they count for.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})
WHERE VISIBLE(u)
RETURN u.id AS id, u.agent_id AS agent_id, u.session_id AS session_id, u.team_ids AS team_ids, u.content AS content,
       u.tool_arguments AS tool_arguments, u.trust AS trust, u.scope_key AS scope_key
