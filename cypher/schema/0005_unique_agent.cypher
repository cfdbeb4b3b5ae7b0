// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// As for units.
CREATE CONSTRAINT agent_key IF NOT EXISTS FOR (a:Agent) REQUIRE (a.tenant_id, a.id) IS UNIQUE
