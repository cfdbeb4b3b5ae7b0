// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// The teams of a tenant.
CREATE INDEX team_tenant IF NOT EXISTS FOR (t:Team) ON (t.tenant_id)
