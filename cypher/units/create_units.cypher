// mode: write
// params: tenant_id: str, rows: list[dict]
// returns: written: int
// scope: tenant
// All new units of a batch. Times come as ISO text, since the embedded engine drops the offset of a datetime parameter.
UNWIND $rows AS row
CREATE (u:ContextUnit {tenant_id: $tenant_id, id: row.id})
SET u += row.properties, u.timestamp = datetime(row.timestamp), u.recorded_at = datetime(row.recorded_at)
RETURN count(u) AS written
