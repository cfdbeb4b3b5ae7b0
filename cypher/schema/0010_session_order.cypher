// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// As task_order, for a session.
CREATE INDEX context_unit_session_order IF NOT EXISTS FOR (u:ContextUnit) ON (u.session_order)
