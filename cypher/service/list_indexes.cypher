// mode: autocommit
// params:
// returns: name: str, state: str, type: str
// scope: exempt: names of indexes, no data
// What `lastro doctor` compares with the indexes that the migrations make.
SHOW INDEXES YIELD name, state, type RETURN name, state, type
