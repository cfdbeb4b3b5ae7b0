// mode: autocommit
// params: transaction_id: str
// returns:
// scope: exempt: ends a statement that nobody waits for
// Second half of the watchdog.
TERMINATE TRANSACTION $transaction_id
