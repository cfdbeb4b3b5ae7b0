// mode: autocommit
// params: dimensions: int
// returns:
// scope: exempt: definition of the schema
// The vector index, made at start and not by a migration, since its dimensions are those of the embedder that is set. A unit is in it while it has an embedding.
CREATE VECTOR INDEX unit_embedding IF NOT EXISTS FOR (u:ContextUnit) ON (u.embedding)
OPTIONS {indexConfig: {`vector.dimensions`: $dimensions, `vector.similarity_function`: 'cosine'}}
