// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// The keys of a tenant.
CREATE INDEX api_key_tenant IF NOT EXISTS FOR (k:ApiKey) ON (k.tenant_id)
