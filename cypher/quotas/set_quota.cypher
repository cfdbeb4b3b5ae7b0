// mode: write
// params: tenant_id: str, key: str, subject_type: str, subject_id: str, most_units: int, most_bytes: int, most_requests: int, most_tokens: int, window_s: int
// returns: key: str
// scope: tenant
// The limits of a subject, whole. What was counted in the window stays, unless windows are of another length now.
MERGE (q:Quota {tenant_id: $tenant_id, key: $key})
ON CREATE SET q.requests = 0, q.tokens = 0
WITH q, CASE WHEN q.window_s = $window_s THEN q.window ELSE null END AS window
SET q.type = $subject_type, q.name = $subject_id, q.most_units = $most_units, q.most_bytes = $most_bytes, q.most_requests = $most_requests,
    q.most_tokens = $most_tokens, q.window_s = $window_s, q.window = window
RETURN q.key AS key
