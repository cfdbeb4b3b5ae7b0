// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// One guard node a tenant; it is locked first by every write.
CREATE CONSTRAINT tenant_key IF NOT EXISTS FOR (t:Tenant) REQUIRE t.tenant_id IS UNIQUE
