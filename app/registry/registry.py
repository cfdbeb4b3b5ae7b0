"""Identity, then permission: the first two steps of every request, and the only place that mints an AuthorizedScope."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from app.registry import keys
from app.registry.permissions import ALLOWED, Action
from graph.model.base import check_id
from graph.model.errors import Forbidden, InvalidId, NotFound, Unauthenticated
from graph.model.scope import RESERVED_PREFIX, AuthorizedScope, Principal, Role
from graph.model.units import Scope
from graph.registry_store import NEVER, RegistryStore, StoredKey

MAX_HEADER_CHARACTERS = 512


@dataclass(frozen=True, slots=True)
class Credential:
    """What a door received: the Authorization header and the Lastro-… headers, unchecked."""

    authorization: str | None = field(default=None, repr=False)
    session_id: str | None = None
    model: str | None = None
    organization_id: str | None = None
    assessment_id: str | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made. ``text`` is the only time the whole key is seen."""

    text: str = field(repr=False)
    stored: StoredKey


class Registry:
    """Knows tenants and keys."""

    def __init__(self, store: RegistryStore) -> None:
        self._store = store

    async def identify(self, credential: Credential) -> Principal:
        """Who is asking. The key is read anew on each request, so a revocation holds at once on every replica.

        Raises:
            Unauthenticated: the same for a missing, malformed, unknown, wrong, expired and revoked key.
        """
        text = keys.parse_bearer(credential.authorization)
        if text is None:
            raise Unauthenticated
        stored = await self.find_key(text.id)
        # Compared also when there is no such key, so that time does not tell which half was wrong.
        right = keys.matches(text.secret, stored.secret_hash if stored is not None else keys.hash_secret(""))
        if stored is None or not right or stored.revoked_at is not None or stored.expires_at <= datetime.now(UTC):
            raise Unauthenticated
        return Principal(
            tenant_id=stored.tenant_id,
            agent_id=stored.agent_id,
            role=stored.role,
            key_id=stored.id,
            bound=stored.bound,
            session_id=_checked_id(credential.session_id, "Lastro-Session"),
            model=credential.model[:MAX_HEADER_CHARACTERS] if credential.model and credential.model.isprintable() else None,
        )

    def authorize(self, principal: Principal, action: Action, credential: Credential | None = None) -> AuthorizedScope:
        """What this principal may touch for this action. A bound key stays within its organisation and assessment whatever the headers say.

        Raises:
            Forbidden: the role does not allow the action.
            NotFound: the headers name a place outside of the key's bounds; the same text as for a place that does not exist.
        """
        if action not in ALLOWED[principal.role]:
            raise Forbidden
        asked = credential or Credential()
        organization = _checked_id(asked.organization_id, "Lastro-Organization")
        if principal.bound.assessment_id is not None and organization not in {None, principal.bound.organization_id}:
            # An assessment is one of its organisation: a key that is bound to it cannot look into another's.
            raise NotFound
        organization = _within(principal.bound.organization_id, organization)
        assessment = _within(principal.bound.assessment_id, _checked_id(asked.assessment_id, "Lastro-Assessment"))
        return AuthorizedScope(principal, organization, assessment)

    def local(self, tenant_id: str, agent_id: str, *, session_id: str | None = None, role: Role = Role.ADMIN) -> AuthorizedScope:
        """The scope of whoever runs a command on the store itself: they own the data folder, so no key stands between.

        Raises:
            InvalidId: a name is not an id.
        """
        for name, value in (("--tenant", tenant_id), ("--agent", agent_id)):
            _checked_id(value, name)
        return AuthorizedScope(Principal(tenant_id, agent_id, role, "local", Scope(), _checked_id(session_id, "--session")), None, None)

    def speaking_as(self, scope: AuthorizedScope, model: str) -> AuthorizedScope:
        """The same scope with another model as the author of what is written; nothing more becomes visible."""
        return AuthorizedScope(replace(scope.principal, model=model), scope.organization_id, scope.assessment_id)

    async def ensure_tenant(self, scope: AuthorizedScope) -> None:
        """Make the tenant of a local scope known."""
        await self._store.ensure_tenant(scope)

    async def find_key(self, key_id: str) -> StoredKey | None:
        """A key by its public id, whoever's it is; for the identification of callers and nothing else."""
        return await self._store.find_key(key_id)

    async def create_key(
        self, scope: AuthorizedScope, *, agent_id: str, role: Role, expires_at: datetime | None = None, bound: Scope | None = None
    ) -> NewKey:
        """Make a key of the scope's tenant. Its text is in the result and nowhere else.

        Raises:
            InvalidId: the agent is not an id, or the tenant's name is reserved for the service.
        """
        _checked_id(agent_id, "agent")
        if scope.tenant_id.startswith(RESERVED_PREFIX):
            raise InvalidId(f"Tenants whose names begin with {RESERVED_PREFIX} are the service's own.")
        text = keys.new_key()
        stored = StoredKey(
            id=text.id,
            tenant_id=scope.tenant_id,
            agent_id=agent_id,
            role=role,
            bound=bound or Scope(),
            expires_at=expires_at or NEVER,
            revoked_at=None,
            secret_hash=keys.hash_secret(text.secret),
        )
        await self._store.create_key(scope, stored, datetime.now(UTC))
        return NewKey(str(text), stored)

    async def list_keys(self, scope: AuthorizedScope) -> list[StoredKey]:
        """The tenant's keys, newest first, without secrets."""
        return await self._store.list_keys(scope)

    async def revoke_key(self, scope: AuthorizedScope, key_id: str) -> None:
        """Revoke at once.

        Raises:
            NotFound: the tenant has no such key.
        """
        await self._store.revoke_key(scope, key_id, datetime.now(UTC))


def _checked_id(value: str | None, name: str) -> str | None:
    if value is None or value == "":
        return None
    try:
        return check_id(value)
    except ValueError:
        raise InvalidId().at(field=name) from None


def _within(bound: str | None, asked: str | None) -> str | None:
    if bound is not None and asked is not None and asked != bound:
        raise NotFound
    return bound if bound is not None else asked
