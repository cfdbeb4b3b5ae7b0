// mode: write
// params: tenant_id: str, ids: list[str]
// returns: cut: int
// scope: tenant
// The edges from erased units: to what came before them, to session and task. They are bounded by what one unit may hold.
UNWIND $ids AS id
MATCH (u:ContextUnit {tenant_id: $tenant_id, id: id})-[r]->()
DELETE r
RETURN count(*) AS cut
