// mode: read
// params: from_key: str, to_key: str, limit: int
// returns: tenant_id: str, id: str, tier_age: str
// scope: exempt: ids of units whose time in their tier is up, of whatever tenant; the background job moves them within that tenant's scope
// The beginning of a range of the age index: nothing is read but what is due.
MATCH (u:ContextUnit)
WHERE u.tier_age >= $from_key AND u.tier_age < $to_key
WITH u ORDER BY u.tier_age LIMIT $limit
RETURN u.tenant_id AS tenant_id, u.id AS id, u.tier_age AS tier_age
