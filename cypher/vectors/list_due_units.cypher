// mode: read
// params: before_key: str, limit: int
// returns: tenant_id: str, id: str, due: str, content: str, tool_name: str, tool_arguments: str, tries: int
// scope: exempt: the job that embeds works for all tenants, and tells nobody what it reads
// Units that wait for their embedding, the oldest first whatever tenant they are of. Their mark is in the graph, so that a crash loses none.
MATCH (u:ContextUnit)
WHERE u.embedding_due > '' AND u.embedding_due < $before_key
WITH u ORDER BY u.embedding_due LIMIT $limit
RETURN u.tenant_id AS tenant_id, u.id AS id, u.embedding_due AS due, u.content AS content, u.tool_name AS tool_name,
       u.tool_arguments AS tool_arguments, coalesce(u.embedding_tries, 0) AS tries
