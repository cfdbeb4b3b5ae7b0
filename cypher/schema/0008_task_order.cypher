// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// Newest units of a task without reading the task: one text per unit sorts by tenant, task, time, id. Both engines read it backwards in index order.
CREATE INDEX context_unit_task_order IF NOT EXISTS FOR (u:ContextUnit) ON (u.task_order)
