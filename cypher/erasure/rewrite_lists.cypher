// mode: write
// params: tenant_id: str, rows: list[dict]
// returns: rewritten: int
// scope: tenant
// Others forget an erased unit's id.
UNWIND $rows AS row
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: row.id})
SET u.superseder_ids = row.superseder_ids, u.result_ids = row.result_ids
RETURN count(u) AS rewritten
