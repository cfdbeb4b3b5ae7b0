// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// One node says which model the embeddings are of; unique, so that two replicas cannot make two.
CREATE CONSTRAINT embedding_state_id IF NOT EXISTS FOR (s:EmbeddingState) REQUIRE s.id IS UNIQUE
