// mode: write
// params: tenant_id: str, from_key: str, to_key: str, limit: int
// returns: labels: list[str], edge_types: list[str]
// scope: tenant
// Some of a tenant's units, newest first: edges point to what came before, so a hub has lost its edges when its turn comes.
MATCH (u:ContextUnit {tenant_id: $tenant_id})
WHERE u.tenant_order >= $from_key AND u.tenant_order < $to_key
WITH u ORDER BY u.tenant_order DESC LIMIT $limit
OPTIONAL MATCH (u)-[r]-()
WITH collect(DISTINCT u) AS nodes, collect(DISTINCT r) AS edges
WITH nodes, [n IN nodes | labels(n)[0]] AS labels, [r IN edges | type(r)] AS edge_types
UNWIND nodes AS n
DETACH DELETE n
RETURN DISTINCT labels, edge_types
