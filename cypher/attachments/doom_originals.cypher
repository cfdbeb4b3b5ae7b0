// mode: write
// params: tenant_id: str, keys: list[str]
// returns: doomed: int
// scope: tenant
// Originals that are to be removed: nobody reads them from now on, and their bytes go next.
UNWIND $keys AS key
MATCH (o:Original {tenant_id: $tenant_id, key: key})
SET o.state = 'doomed', o.due_us = 0
RETURN count(o) AS doomed
