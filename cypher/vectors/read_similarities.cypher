// mode: read
// params: tenant_id: str, sees: dict, ids: list[str], vector: list[float], model: str
// returns: rows: list[list]
// scope: tenant
// How near units that were found otherwise are to a question. What has no embedding, or cannot be seen, gives nothing.
// All come in one record: one by one they cost the service several times the processor time (docs/benchmarks.md).
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})
WHERE VISIBLE(u) AND coalesce(u.embedding_model, u.cold_embedding_model) = $model
RETURN collect([u.id, vector.similarity.cosine(coalesce(u.embedding, u.cold_embedding), $vector)]) AS rows
