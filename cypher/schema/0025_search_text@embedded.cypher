// mode: schema
// language: sql
// params:
// returns:
// scope: exempt: definition of the schema
// The embedded engine makes a full-text index over declared properties only.
CREATE PROPERTY ContextUnit.search_text IF NOT EXISTS STRING
