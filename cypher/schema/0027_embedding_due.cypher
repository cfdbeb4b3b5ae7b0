// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// Units that wait for their embedding, oldest first.
CREATE INDEX context_unit_embedding_due IF NOT EXISTS FOR (u:ContextUnit) ON (u.embedding_due)
