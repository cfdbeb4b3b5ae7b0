// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// A policy is found by its id when it is revoked.
CREATE CONSTRAINT policy_key IF NOT EXISTS FOR (p:Policy) REQUIRE (p.tenant_id, p.id) IS UNIQUE
