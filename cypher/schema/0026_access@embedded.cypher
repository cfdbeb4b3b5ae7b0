// mode: schema
// language: sql
// params:
// returns:
// scope: exempt: definition of the schema
// The same for the tokens of who may see a unit.
CREATE PROPERTY ContextUnit.access IF NOT EXISTS STRING
