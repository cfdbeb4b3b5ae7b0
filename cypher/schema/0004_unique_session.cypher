// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// As for units.
CREATE CONSTRAINT session_key IF NOT EXISTS FOR (s:Session) REQUIRE (s.tenant_id, s.id) IS UNIQUE
