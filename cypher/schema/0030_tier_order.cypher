// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// A session's units as its tiers want them, hot before warm before cold and the newest first: read backwards in index order.
CREATE INDEX context_unit_tier_order IF NOT EXISTS FOR (u:ContextUnit) ON (u.tier_order)
