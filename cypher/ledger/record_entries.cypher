// mode: write
// params: tenant_id: str, entries: list[dict]
// returns: recorded: int
// scope: tenant
// What a replica counted so far in an hour, as totals of its own: written twice they are the same. Nothing for a tenant that is gone.
MATCH (t:Tenant {tenant_id: $tenant_id})
WHERE t.erasing_since IS NULL
UNWIND $entries AS entry
MERGE (l:LedgerEntry {tenant_id: $tenant_id, key: entry.key})
SET l.hour = entry.hour, l.agent_id = entry.agent_id, l.session_id = entry.session_id, l.task_id = entry.task_id, l.model = entry.model,
    l.answers = entry.answers, l.cache_hits = entry.cache_hits, l.fallbacks = entry.fallbacks, l.tokens_asked = entry.tokens_asked,
    l.tokens_spent = entry.tokens_spent, l.tokens_left_out = entry.tokens_left_out
RETURN count(l) AS recorded
