// mode: write
// params: rows: list[dict]
// returns: postponed: int
// scope: exempt: the job that embeds works for all tenants, and tells nobody what it reads
// Units that could not be embedded: why, and when they are tried again, or never by itself (null). Waits as write_embeddings does.
UNWIND $rows AS row
MATCH (u:ContextUnit {tenant_id: row.tenant_id, id: row.id})
SET u.embedding_tries = coalesce(u.embedding_tries, 0)
WITH u, row
WHERE u.id = row.id AND u.embedding_due = row.due
SET u.embedding_due = row.next_due, u.embedding_failed = row.code, u.embedding_tries = row.tries
RETURN count(u) AS postponed
