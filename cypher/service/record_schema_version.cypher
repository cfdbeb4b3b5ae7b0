// mode: write
// params: holder: str, version: int
// returns: version: int
// scope: exempt: one node of the installation, no tenant's data
// A migration counts as done only when this is written, by the one that holds the lease.
MATCH (s:SchemaState {id: 'lastro'})
WHERE s.holder = $holder
SET s.version = $version
RETURN s.version AS version
