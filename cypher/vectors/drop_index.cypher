// mode: autocommit
// params:
// returns:
// scope: exempt: definition of the schema
// For another model, whose vectors have other dimensions.
DROP INDEX unit_embedding IF EXISTS
