// mode: read
// params: before_key: str, most: int
// returns: due: int, oldest: str
// scope: exempt: a number and a time for whoever runs the service, no tenant's data
// How many units wait for their embedding, counted up to $most, and since when the first of those does. Engines read a range in the order of its index; asked for that order, the embedded one would sort all of it.
MATCH (u:ContextUnit)
WHERE u.embedding_due > '' AND u.embedding_due < $before_key
WITH u.embedding_due AS due LIMIT $most
RETURN count(due) AS due, min(due) AS oldest
