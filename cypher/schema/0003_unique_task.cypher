// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// As for units.
CREATE CONSTRAINT task_key IF NOT EXISTS FOR (t:Task) REQUIRE (t.tenant_id, t.id) IS UNIQUE
