// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// One counter node for each tenant, agent, session and team; the key begins with the tenant, so it also serves ranges in order.
CREATE CONSTRAINT subject_key IF NOT EXISTS FOR (s:Subject) REQUIRE s.key IS UNIQUE
