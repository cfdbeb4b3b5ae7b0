// mode: write
// params: tenant_id: str, moves: list[dict]
// returns: id: str, session_id: str
// scope: tenant
// Hot units that aged or are too many become warm, unless they were used or moved since they were found. What has authority, and constraints, go no further down, so they have no age.
UNWIND $moves AS move
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: move.id})
SET u.tier_lock = true
REMOVE u.tier_lock
WITH u, move
WHERE u.tier_age = move.tier_age AND u.tier = 'hot'
SET u.tier = 'warm',
    u.tier_order = CASE WHEN u.session_id IS NULL THEN null ELSE
      $tenant_id + ' ' + u.session_id + ' 1 ' + substring(u.session_order, size($tenant_id) + size(u.session_id) + 2) END,
    u.tier_age = CASE WHEN u.kind = 'constraint' OR u.trust IN ['normative', 'approved_artifact'] THEN null ELSE
      '1' + substring(u.tier_age, 1) END
RETURN u.id AS id, u.session_id AS session_id
