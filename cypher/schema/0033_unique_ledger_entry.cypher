// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// What answers for one agent, session, task and model cost in an hour, one node for each replica that counted; read as a range of the key.
CREATE CONSTRAINT ledger_entry_key IF NOT EXISTS FOR (l:LedgerEntry) REQUIRE l.key IS UNIQUE
