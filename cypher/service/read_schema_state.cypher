// mode: read
// params:
// returns: version: int, secret: str
// scope: exempt: one node of the installation, no tenant's data
// Which migrations ran, and the secret that fences are derived from.
MATCH (s:SchemaState {id: 'lastro'})
RETURN s.version AS version, s.secret AS secret
