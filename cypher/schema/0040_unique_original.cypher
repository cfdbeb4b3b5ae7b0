// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// The originals that are stored: one node for each digest, place and agent that stored it.
CREATE CONSTRAINT original_key IF NOT EXISTS FOR (o:Original) REQUIRE (o.tenant_id, o.key) IS UNIQUE
