// mode: schema
// language: sql
// params:
// returns:
// scope: exempt: definition of the schema
// The embedded engine makes a vector index over a declared property only; declared so, a number takes four bytes.
CREATE PROPERTY ContextUnit.embedding IF NOT EXISTS ARRAY_OF_FLOATS
