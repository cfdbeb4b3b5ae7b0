// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// The policies of a tenant.
CREATE INDEX policy_tenant IF NOT EXISTS FOR (p:Policy) ON (p.tenant_id)
