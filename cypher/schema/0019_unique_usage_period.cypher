// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// What a subject did in an hour, one node for each replica that counted; read as a range of the key.
CREATE CONSTRAINT usage_period_key IF NOT EXISTS FOR (p:UsagePeriod) REQUIRE p.key IS UNIQUE
