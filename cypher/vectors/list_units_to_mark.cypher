// mode: read
// params: after_key: str, limit: int
// returns: tenant_id: str, id: str, order_key: str, recorded_us: int, model: str, waits: bool
// scope: exempt: the job that embeds works for all tenants, and tells nobody what it reads
// Units of all tenants in the order of tenant_order, from after a key: what a change of model goes through.
MATCH (u:ContextUnit)
WHERE u.tenant_order > $after_key
WITH u ORDER BY u.tenant_order LIMIT $limit
RETURN u.tenant_id AS tenant_id, u.id AS id, u.tenant_order AS order_key, u.recorded_us AS recorded_us,
       coalesce(u.embedding_model, u.cold_embedding_model) AS model, u.embedding_due IS NOT NULL AS waits
