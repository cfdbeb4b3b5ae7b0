// mode: schema
// params:
// returns:
// scope: exempt: definition of the schema
// Originals that no unit names, by when they are removed; only those have the property.
CREATE INDEX original_due IF NOT EXISTS FOR (o:Original) ON (o.due_us)
