// mode: schema
// language: sql
// params:
// returns:
// scope: exempt: definition of the schema
// The same index in the embedded engine's own language.
CREATE INDEX IF NOT EXISTS ON ContextUnit (search_text, access) FULL_TEXT METADATA {"analyzer": "org.apache.lucene.analysis.core.WhitespaceAnalyzer"}
