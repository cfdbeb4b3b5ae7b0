// mode: write
// params: tenant_id: str, pairs: list[dict]
// returns: marked: int
// scope: tenant
// A call keeps the ids of its results (the first eight: later ones, perhaps out of others' sight, must not push one out), so that a pair is found whole without reading what else a call caused.
UNWIND $pairs AS pair
MATCH (call:ContextUnit {tenant_id: $tenant_id, id: pair.call_id})
SET call.result_ids = (coalesce(call.result_ids, []) + pair.result_id)[..8]
RETURN count(call) AS marked
