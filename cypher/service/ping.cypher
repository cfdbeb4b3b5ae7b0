// mode: read
// params:
// returns: answer: int
// scope: exempt: touches no data
// Whether the database answers at all.
RETURN 1 AS answer
