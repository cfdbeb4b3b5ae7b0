// mode: autocommit
// params: dimensions: int
// returns:
// scope: exempt: definition of the schema
// The same with the tenant in the index, so that a search can stay within one.
CYPHER 25 CREATE VECTOR INDEX unit_embedding IF NOT EXISTS FOR (u:ContextUnit) ON (u.embedding) WITH [u.tenant_id]
OPTIONS {indexConfig: {`vector.dimensions`: $dimensions, `vector.similarity_function`: 'cosine'}}
