// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// What is kept of an erased tenant: counts under a keyed hash of its name, so that its certificate can be asked for again.
CREATE CONSTRAINT erasure_record_id IF NOT EXISTS FOR (r:ErasureRecord) REQUIRE r.id IS UNIQUE
