// mode: read
// params: tenant_id: str, from_key: str, to_key: str
// returns: key: str, type: str, name: str, most_units: int, most_bytes: int, most_requests: int, most_tokens: int, window_s: int, window: int, requests: int, tokens: int, units: int, bytes: int, now_s: int
// scope: tenant
// A tenant's quotas with what is used of them, and the database's time, which windows go by.
MATCH (q:Quota {tenant_id: $tenant_id})
WHERE q.key >= $from_key AND q.key < $to_key
OPTIONAL MATCH (s:Subject {tenant_id: $tenant_id, key: q.key})
RETURN q.key AS key, q.type AS type, q.name AS name, q.most_units AS most_units, q.most_bytes AS most_bytes,
       q.most_requests AS most_requests, q.most_tokens AS most_tokens, q.window_s AS window_s, q.window AS window, q.requests AS requests,
       q.tokens AS tokens, coalesce(s.units, 0) AS units, coalesce(s.bytes, 0) AS bytes, timestamp() / 1000 AS now_s
ORDER BY key
