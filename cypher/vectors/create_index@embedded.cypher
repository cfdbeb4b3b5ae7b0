// mode: autocommit
// language: sql
// params: dimensions: int
// returns:
// scope: exempt: definition of the schema
// The same in the embedded engine's own language.
CREATE INDEX IF NOT EXISTS ON ContextUnit (embedding) LSM_VECTOR METADATA {"dimensions": :dimensions, "similarity": "COSINE"}
