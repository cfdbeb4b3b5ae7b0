// mode: autocommit
// params:
// returns: transactionId: str, currentQuery: str, elapsedTime: duration
// scope: exempt: running statements, by their names
// The embedded engine does not stop a statement when its client gives up, so the watchdog looks for those that are overdue.
SHOW TRANSACTIONS YIELD * RETURN *
