// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// Ids are unique inside a tenant; every read and every edge finds its unit by this index.
CREATE CONSTRAINT context_unit_key IF NOT EXISTS FOR (u:ContextUnit) REQUIRE (u.tenant_id, u.id) IS UNIQUE
