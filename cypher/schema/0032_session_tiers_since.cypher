// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// Sessions whose tiers have grown since the background job looked at them; only those have the property.
CREATE INDEX session_tiers_since IF NOT EXISTS FOR (s:Session) ON (s.tiers_since_ms)
