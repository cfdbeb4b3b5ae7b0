// mode: read
// params: tenant_id: str, from_key: str, to_key: str, from_hour: int, to_hour: int, hours: int
// returns: subject: str, starts: int, requests: int, reads: int, writes: int, units_written: int, tokens_read: int, tokens_written: int
// scope: tenant
// What the subjects of a page did, summed over replicas and over spans of so many hours.
MATCH (p:UsagePeriod {tenant_id: $tenant_id})
WHERE p.key >= $from_key AND p.key < $to_key AND p.hour >= $from_hour AND p.hour < $to_hour
WITH p.subject AS subject, p.hour / $hours * $hours AS starts, p
RETURN subject AS subject, starts AS starts, sum(p.requests) AS requests, sum(p.reads) AS reads, sum(p.writes) AS writes,
       sum(p.units_written) AS units_written, sum(p.tokens_read) AS tokens_read, sum(p.tokens_written) AS tokens_written
ORDER BY subject, starts
