// mode: write
// params: model: str, marked_to: str, rows: list[dict]
// returns: marked_to: str
// scope: exempt: the job that embeds works for all tenants, and tells nobody what it reads
// Units that shall be embedded anew lose what they have and wait; how far this has come is written in the same transaction.
MATCH (s:EmbeddingState {id: 'lastro'})
WHERE s.model = $model
SET s.marked_to = $marked_to
WITH s
CALL (s) {
  UNWIND $rows AS row
  MATCH (u:ContextUnit {tenant_id: row.tenant_id, id: row.id})
  SET u.embedding_tries = 0
  WITH u, row
  WHERE u.id = row.id
  SET u.embedding_due = row.due
  REMOVE u.embedding, u.embedding_model, u.cold_embedding, u.cold_embedding_model, u.embedding_failed, u.embedding_tries
  RETURN count(u) AS marked
}
RETURN s.marked_to AS marked_to
