// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// As task_order, by step first: what was known up to a step.
CREATE INDEX context_unit_task_step_order IF NOT EXISTS FOR (u:ContextUnit) ON (u.task_step_order)
