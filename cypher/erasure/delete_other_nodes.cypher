// mode: write
// params: tenant_id: str, limit: int
// returns: labels: list[str], edge_types: list[str]
// scope: tenant
// Some of whatever else a tenant has, by its name alone, so that a label made later is not forgotten. Its keys and the tenant come last.
MATCH (n)
WHERE n.tenant_id = $tenant_id AND NOT n:Tenant AND NOT n:ApiKey
WITH n LIMIT $limit
OPTIONAL MATCH (n)-[r]-()
WITH collect(DISTINCT n) AS nodes, collect(DISTINCT r) AS edges
WITH nodes, [n IN nodes | labels(n)[0]] AS labels, [r IN edges | type(r)] AS edge_types
UNWIND nodes AS n
DETACH DELETE n
RETURN DISTINCT labels, edge_types
