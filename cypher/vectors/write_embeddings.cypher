// mode: write
// params: model: str, rows: list[dict]
// returns: written: int
// scope: exempt: the job that embeds works for all tenants, and tells nobody what it reads
// The first SET waits for whoever changes the unit; looked at only then, one that was erased or embedded meanwhile stays as it is. Removing a property does not wait where it is not there (seen on the newest Neo4j). Nothing is written once another model has the say. What is cold keeps its embedding beside the index, until it is used again.
MATCH (s:EmbeddingState {id: 'lastro'})
WHERE s.model = $model
UNWIND $rows AS row
MATCH (u:ContextUnit {tenant_id: row.tenant_id, id: row.id})
SET u.embedding_tries = coalesce(u.embedding_tries, 0)
WITH u, row
WHERE u.id = row.id AND u.embedding_due = row.due
SET u.embedding = CASE u.tier WHEN 'cold' THEN null ELSE row.embedding END,
    u.embedding_model = CASE u.tier WHEN 'cold' THEN null ELSE $model END,
    u.cold_embedding = CASE u.tier WHEN 'cold' THEN row.embedding ELSE null END,
    u.cold_embedding_model = CASE u.tier WHEN 'cold' THEN $model ELSE null END
REMOVE u.embedding_due, u.embedding_tries, u.embedding_failed
RETURN count(u) AS written
