// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// What units of a tenant speak of, once for each name.
CREATE CONSTRAINT entity_key IF NOT EXISTS FOR (e:Entity) REQUIRE (e.tenant_id, e.id) IS UNIQUE
