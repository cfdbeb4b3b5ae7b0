// mode: write
// params: tenant_id: str, uses: list[dict]
// returns: id: str, session_id: str, was: str
// scope: tenant
// Units that came in answers: each goes one tier up, or stays hot for longer. A use that is written already changes nothing, so that the statement can run again.
// The mark is set and taken away at once: with it Neo4j locks the unit before its tier is read. Who waited here while the unit was erased holds a shell.
UNWIND $uses AS used
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: used.id})
SET u.tier_lock = true
REMOVE u.tier_lock
WITH u, used
WHERE u.recorded_us IS NOT NULL AND coalesce(u.last_used_us, 0) < used.at_us
WITH u, used, u.tier AS was, CASE u.tier WHEN 'cold' THEN 'warm' ELSE 'hot' END AS tier, CASE u.tier WHEN 'cold' THEN '1' ELSE '2' END AS place
SET u.last_used_us = used.at_us, u.uses = coalesce(u.uses, 0) + used.times, u.tier = tier,
    u.tier_order = CASE WHEN u.session_id IS NULL THEN null ELSE
      $tenant_id + ' ' + u.session_id + ' ' + place + ' ' + substring(u.session_order, size($tenant_id) + size(u.session_id) + 2) END,
    u.tier_age = CASE WHEN tier = 'warm' AND (u.kind = 'constraint' OR u.trust IN ['normative', 'approved_artifact']) THEN null ELSE
      place + ' ' + used.at + ' ' + u.tenant_order END
RETURN u.id AS id, u.session_id AS session_id, was
