// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// An erasure that is not through yet; few at a time, found by their random ids and all together after a crash.
CREATE CONSTRAINT erasure_id IF NOT EXISTS FOR (e:Erasure) REQUIRE e.id IS UNIQUE
