// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// Newest units of a tenant, for lists and for browsing.
CREATE INDEX context_unit_tenant_order IF NOT EXISTS FOR (u:ContextUnit) ON (u.tenant_order)
