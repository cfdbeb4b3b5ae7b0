// mode: write
// params: hour: int, limit: int
// returns: deleted: int
// scope: exempt: entries over their time, of whatever tenant; nothing of them is told but how many they were
// Some of the ledger's entries that are older than the settings let them grow.
MATCH (l:LedgerEntry)
WHERE l.hour < $hour
WITH l LIMIT $limit
DETACH DELETE l
RETURN count(*) AS deleted
