// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// A key is found by its public id.
CREATE CONSTRAINT api_key_id IF NOT EXISTS FOR (k:ApiKey) REQUIRE k.id IS UNIQUE
