// mode: write
// params: secret: str
// returns: version: int
// scope: exempt: one node of the installation, no tenant's data
// The first start makes the state node; every later one finds it.
MERGE (s:SchemaState {id: 'lastro'})
ON CREATE SET s.version = 0, s.secret = $secret, s.holder = '', s.held_until_ms = 0
RETURN s.version AS version
