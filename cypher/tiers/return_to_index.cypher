// mode: write
// params: tenant_id: str, ids: list[str]
// returns: id: str
// scope: tenant
// Units that are no longer cold are found by meaning again, if they have an embedding; `vectors/write_embeddings` puts it in the one place or the other.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})
WHERE u.cold_embedding IS NOT NULL AND u.tier <> 'cold'
SET u.embedding = u.cold_embedding, u.embedding_model = u.cold_embedding_model
SET u.cold_embedding = null, u.cold_embedding_model = null
RETURN u.id AS id
