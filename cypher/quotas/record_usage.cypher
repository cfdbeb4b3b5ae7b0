// mode: write
// params: tenant_id: str, periods: list[dict]
// returns: recorded: int
// scope: tenant
// What a replica counted so far in an hour, as totals of its own: written twice they are the same. Nothing for a tenant that is gone.
MATCH (t:Tenant {tenant_id: $tenant_id})
WHERE t.erasing_since IS NULL
UNWIND $periods AS period
MERGE (s:Subject {tenant_id: $tenant_id, key: period.subject})
ON CREATE SET s.type = period.type, s.name = period.name, s.units = 0, s.bytes = 0
MERGE (p:UsagePeriod {tenant_id: $tenant_id, key: period.key})
SET p.subject = period.subject, p.hour = period.hour, p.requests = period.requests, p.reads = period.reads, p.writes = period.writes,
    p.units_written = period.units_written, p.tokens_read = period.tokens_read, p.tokens_written = period.tokens_written
RETURN count(p) AS recorded
