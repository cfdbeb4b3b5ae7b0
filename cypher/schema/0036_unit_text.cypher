// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// Words and who may see a unit in one index, so that a search counts only what its caller may see. Words come normalised (graph/model/search_text.py), hence the analyzer that only splits at spaces; a unit is found as soon as it is committed.
CREATE FULLTEXT INDEX unit_text IF NOT EXISTS FOR (u:ContextUnit) ON EACH [u.search_text, u.access]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace', `fulltext.eventually_consistent`: false}}
