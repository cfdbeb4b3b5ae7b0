// mode: write
// params: holder: str
// returns: version: int
// scope: exempt: one node of the installation, no tenant's data
// Lets a waiting replica go on at once.
MATCH (s:SchemaState {id: 'lastro'})
WHERE s.holder = $holder
SET s.holder = '', s.held_until_ms = 0
RETURN s.version AS version
