// mode: write
// params: tenant_id: str, moves: list[dict]
// returns: id: str, session_id: str
// scope: tenant
// Warm units that aged or are too many become cold, unless they were used or moved since they were found. They have no age any more, and their embedding is put where the vector index does not see it.
UNWIND $moves AS move
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: move.id})
SET u.tier_lock = true
REMOVE u.tier_lock
WITH u, move
WHERE u.tier_age = move.tier_age AND u.tier = 'warm'
SET u.cold_embedding = u.embedding, u.cold_embedding_model = u.embedding_model
SET u.tier = 'cold', u.tier_age = null, u.embedding = null, u.embedding_model = null,
    u.tier_order = CASE WHEN u.session_id IS NULL THEN null ELSE
      $tenant_id + ' ' + u.session_id + ' 0 ' + substring(u.session_order, size($tenant_id) + size(u.session_id) + 2) END
RETURN u.id AS id, u.session_id AS session_id
