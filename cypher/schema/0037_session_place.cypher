// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// Neighbours of a unit in its session, by exact place.
CREATE INDEX unit_session_place IF NOT EXISTS FOR (u:ContextUnit) ON (u.session_place)
