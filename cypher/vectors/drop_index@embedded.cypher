// mode: autocommit
// language: sql
// params:
// returns:
// scope: exempt: definition of the schema
// The same in the embedded engine's own language.
DROP INDEX `ContextUnit[embedding]` IF EXISTS
