// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// One node holds the schema's version and the installation's secret; unique, so that two replicas cannot make two.
CREATE CONSTRAINT schema_state_id IF NOT EXISTS FOR (s:SchemaState) REQUIRE s.id IS UNIQUE
