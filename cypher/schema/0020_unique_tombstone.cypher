// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// A tombstone is found by tenant and keyed hash; also what a write looks up in a tenant that has some.
CREATE CONSTRAINT tombstone_id IF NOT EXISTS FOR (t:Tombstone) REQUIRE (t.tenant_id, t.id) IS UNIQUE
