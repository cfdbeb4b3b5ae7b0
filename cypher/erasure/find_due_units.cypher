// mode: read
// params: tenant_id: str, from_key: str, to_key: str, cutoffs: dict, authority_kinds: list[str], limit: int
// returns: id: str, kind: str, agent_id: str, session_id: str, team_ids: list[str], content: str, tool_arguments: str, order_key: str
// scope: tenant
// Units that stayed longer than their kind may, oldest first. The age goes by when they were recorded; the range is a day wider than that.
MATCH (u:ContextUnit {tenant_id: $tenant_id})
WHERE u.tenant_order >= $from_key AND u.tenant_order < $to_key AND u.recorded_us < $cutoffs[u.kind]
  AND (NOT u.trust IN ['normative', 'approved_artifact'] OR u.kind IN $authority_kinds)
WITH u ORDER BY u.tenant_order LIMIT $limit
RETURN u.id AS id, u.kind AS kind, u.agent_id AS agent_id, u.session_id AS session_id,
       u.team_ids AS team_ids, u.content AS content, u.tool_arguments AS tool_arguments, u.tenant_order AS order_key
