// mode: read
// params: tenant_id: str, sees: dict, ids: list[str], vector: list[float], model: str
// returns: id: str, similarity: float
// scope: tenant
// How near units that were found otherwise are to a question. What has no embedding, or cannot be seen, gives no row.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})
WHERE VISIBLE(u) AND coalesce(u.embedding_model, u.cold_embedding_model) = $model
RETURN u.id AS id, vector.similarity.cosine(coalesce(u.embedding, u.cold_embedding), $vector) AS similarity
