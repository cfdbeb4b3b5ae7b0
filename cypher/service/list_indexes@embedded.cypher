// mode: autocommit
// params:
// returns: name: str, state: str, type: str
// scope: exempt: names of indexes, no data
// The embedded engine knows SHOW INDEXES only without YIELD.
SHOW INDEXES
