// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// One node for each background job; unique, so that two replicas cannot make two.
CREATE CONSTRAINT lease_id IF NOT EXISTS FOR (l:Lease) REQUIRE l.id IS UNIQUE
