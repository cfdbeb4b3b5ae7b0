// mode: read
// params: tenant_id: str, key: str
// returns: state: str, due_us: int, object_key: str, agent_id: str, session_id: str, team_ids: list[str], bytes: int
// scope: tenant
// An original that is to be removed, with what it counts for; under the tenant's lock.
MATCH (o:Original {tenant_id: $tenant_id, key: $key})
RETURN o.state AS state, o.due_us AS due_us, o.object_key AS object_key, o.agent_id AS agent_id, o.session_id AS session_id,
       o.team_ids AS team_ids, o.bytes AS bytes
