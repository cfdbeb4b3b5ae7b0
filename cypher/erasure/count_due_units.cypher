// mode: read
// params: tenant_id: str, from_key: str, to_key: str, cutoffs: dict, authority_kinds: list[str]
// returns: kind: str, due: int
// scope: tenant
// What a run of retention would erase, for its dry run.
MATCH (u:ContextUnit {tenant_id: $tenant_id})
WHERE u.tenant_order >= $from_key AND u.tenant_order < $to_key AND u.recorded_us < $cutoffs[u.kind]
  AND (NOT u.trust IN ['normative', 'approved_artifact'] OR u.kind IN $authority_kinds)
RETURN u.kind AS kind, count(u) AS due
