// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// Two writers of one team meet at one node.
CREATE CONSTRAINT team_key IF NOT EXISTS FOR (t:Team) REQUIRE (t.tenant_id, t.id) IS UNIQUE
