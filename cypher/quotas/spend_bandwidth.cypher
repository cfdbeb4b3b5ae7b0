// mode: write
// params: tenant_id: str, keys: list[str], requests: int, tokens: int
// returns: key: str, type: str, name: str, requests: int, tokens: int, most_requests: int, most_tokens: int, resets_in_s: int
// scope: tenant
// Counts a request or its tokens in the window that the database's own clock is in, the same for all replicas. Written to first, so that
// nobody else counts between reading and writing; a statement that had to wait must not go back to the window it came in.
UNWIND $keys AS key
MATCH (q:Quota {tenant_id: $tenant_id, key: key})
SET q.changes = coalesce(q.changes, 0) + 1
WITH q, timestamp() / 1000 AS now
WITH q, now, now / q.window_s AS at
WITH q, now, CASE WHEN q.window >= at THEN q.window ELSE at END AS window
WITH q, now, window,
     CASE WHEN q.window = window THEN q.requests ELSE 0 END + $requests AS requests,
     CASE WHEN q.window = window THEN q.tokens ELSE 0 END + $tokens AS tokens
SET q.window = window, q.requests = requests, q.tokens = tokens
RETURN q.key AS key, q.type AS type, q.name AS name, requests AS requests, tokens AS tokens, q.most_requests AS most_requests,
       q.most_tokens AS most_tokens, (window + 1) * q.window_s - now AS resets_in_s
