// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// Entries that are over their time, of all tenants.
CREATE INDEX ledger_hour IF NOT EXISTS FOR (l:LedgerEntry) ON (l.hour)
