// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// One quota a subject; the few quotas of a tenant are read as a range of the key.
CREATE CONSTRAINT quota_key IF NOT EXISTS FOR (q:Quota) REQUIRE q.key IS UNIQUE
