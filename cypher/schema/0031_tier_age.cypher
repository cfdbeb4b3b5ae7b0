// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// Units that can go down a tier, by tier and by when they were last written or used, over all tenants: what is due is the beginning of a range. Cold units are not in it.
CREATE INDEX context_unit_tier_age IF NOT EXISTS FOR (u:ContextUnit) ON (u.tier_age)
