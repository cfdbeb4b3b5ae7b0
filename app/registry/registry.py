"""Identity, then permission: the first two steps of every request, and the only place that mints an AuthorizedScope."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from app.registry import keys
from app.registry.grants import Seen, compiled, holds_until
from app.registry.permissions import ALLOWED, Action
from app.registry.standings import Standings
from app.registry.tokens import Tokens
from graph.model.base import check_id
from graph.model.errors import Forbidden, InvalidId, NotFound, Unauthenticated
from graph.model.policy import NO_STANDING
from graph.model.scope import RESERVED_PREFIX, AuthorizedScope, Principal, Role
from graph.model.units import Scope
from graph.policy_store import PolicyStore
from graph.registry_store import NEVER, RegistryStore, StoredKey
from graph.tenant_lock import LOCAL_KEY_ID, OIDC_KEY_ID

MAX_HEADER_CHARACTERS = 512
MOST_READERS = 4_096
"""Readers, each in a place, whose compiled view is kept."""


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

    def __init__(self, store: RegistryStore, policies: PolicyStore, tokens: Tokens | None = None) -> None:
        """``tokens`` checks the JWTs of an OIDC issuer, where one is set."""
        self._store = store
        self._tokens = tokens
        self._standings = Standings(policies)
        self._seen: OrderedDict[tuple[str | bool | None, ...], Seen] = OrderedDict()

    async def identify(self, credential: Credential) -> Principal:
        """Who is asking. The key is read anew on each request, so a revocation holds at once on every replica.

        Raises:
            Unauthenticated: the same for a missing, malformed, unknown, wrong, expired and revoked key, and for a token that is not right.
            IssuerUnavailable: it is a token, and its issuer's keys cannot be had now.
        """
        text = keys.parse_bearer(credential.authorization)
        if text is None:
            return await self._identify_token(credential)
        stored = await self.find_key(text.id)
        # Compared also when there is no such key, so that time does not tell which half was wrong.
        right = keys.matches(text.secret, stored.secret_hash if stored is not None else keys.hash_secret(""))
        if stored is None or not right or stored.revoked_at is not None or stored.expires_at <= datetime.now(UTC):
            raise Unauthenticated
        principal = Principal(
            tenant_id=stored.tenant_id,
            agent_id=stored.agent_id,
            role=stored.role,
            key_id=stored.id,
            bound=stored.bound,
            session_id=_checked_id(credential.session_id, "Lastro-Session"),
            model=_model_of(credential),
            epoch=stored.epochs.all,
        )
        return await self.with_standing(principal, stored.epochs.policies)

    async def _identify_token(self, credential: Credential) -> Principal:
        """Who the JWT of an OIDC issuer says is asking. A tenant that does not exist is let in only where the first write may make it."""
        if self._tokens is None:
            raise Unauthenticated
        told = await self._tokens.verify(credential.authorization)
        session_id = _within(told.session_id, _checked_id(credential.session_id, "Lastro-Session"))
        principal = Principal(
            told.tenant_id,
            told.agent_id,
            told.role,
            OIDC_KEY_ID,
            told.bound,
            session_id,
            _model_of(credential),
            session_bound=told.session_id is not None,
        )
        epochs = await self._store.epochs(AuthorizedScope(principal, None, None))
        if epochs is None:
            if not self._tokens.creates_tenants:
                raise Unauthenticated
            return await self.with_standing(principal, 0)
        return await self.with_standing(replace(principal, epoch=epochs.all), epochs.policies)

    async def with_standing(self, principal: Principal, epoch: int | None = None) -> Principal:
        """The principal with its tenant's policies and teams. ``epoch``, that of the policies, was read with its key; or is looked up."""
        scope = AuthorizedScope(principal, None, None)
        if epoch is None:
            found = await self._store.epochs(scope)
            epoch = 0 if found is None else found.policies
        standing = await self._standings.of(scope, epoch)
        return principal if standing is NO_STANDING else replace(principal, standing=standing)

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
        return self._mint(principal, organization, assessment)

    def local(
        self, tenant_id: str, agent_id: str, *, session_id: str | None = None, role: Role = Role.ADMIN, place: Credential | None = None
    ) -> AuthorizedScope:
        """The scope of whoever runs a command on the store itself: they own the data folder, so no key stands between.

        ``place`` names an organisation and assessment, if it is in one.

        Raises:
            InvalidId: a name is not an id.
        """
        for name, value in (("--tenant", tenant_id), ("--agent", agent_id)):
            _checked_id(value, name)
        principal = Principal(tenant_id, agent_id, role, LOCAL_KEY_ID, Scope(), _checked_id(session_id, "--session"))
        if place is None:
            return self._mint(principal, None, None)
        organization, assessment = place.organization_id, place.assessment_id
        return self._mint(principal, _checked_id(organization, "--organization"), _checked_id(assessment, "--assessment"))

    def speaking_as(self, scope: AuthorizedScope, model: str) -> AuthorizedScope:
        """The same scope with another model as the author of what is written; nothing more becomes visible."""
        return self._mint(replace(scope.principal, model=model), scope.organization_id, scope.assessment_id)

    def seen_by(self, scope: AuthorizedScope, reader: Principal, organization_id: str | None, assessment_id: str | None) -> AuthorizedScope:
        """What another reader of the same tenant sees; for explaining it to who manages policies.

        Raises:
            NotFound: the reader is of another tenant.
        """
        if reader.tenant_id != scope.tenant_id:
            raise NotFound
        return self._mint(reader, organization_id, assessment_id)

    def _mint(self, principal: Principal, organization_id: str | None, assessment_id: str | None) -> AuthorizedScope:
        """What the principal sees there is kept for its next request: compiling fifty policies takes a millisecond."""
        scope = AuthorizedScope(principal, organization_id, assessment_id)
        bound = principal.bound
        of_key = (principal.tenant_id, principal.agent_id, principal.role, bound.organization_id, bound.assessment_id)
        reader = (*of_key, principal.session_id, principal.session_bound, organization_id, assessment_id)
        now = datetime.now(UTC)
        kept = self._seen.get(reader)
        if kept is None or kept.standing is not principal.standing or kept.until <= now:
            sees = compiled(principal, scope.own_places, organization_id, assessment_id, now)
            kept = self._seen[reader] = Seen(sees, principal.standing, holds_until(principal.standing, now))
        self._seen.move_to_end(reader)
        while len(self._seen) > MOST_READERS:
            self._seen.popitem(last=False)
        return AuthorizedScope(principal, organization_id, assessment_id, kept.sees, kept.until)

    async def knows_tenant(self, scope: AuthorizedScope) -> bool:
        """Whether the scope's tenant was ever made here; with its first key, usually."""
        return await self._store.epochs(scope) is not None

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
        if (_checked_id(agent_id, "agent") or "").startswith(RESERVED_PREFIX):
            raise InvalidId(f"Agents whose names begin with {RESERVED_PREFIX} are the service's own.")
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

    async def rotate_key(self, scope: AuthorizedScope, key_id: str, *, overlap: timedelta, expires_at: datetime | None = None) -> NewKey:
        """Make a key that takes the place of one of the tenant: the same agent, role and bounds. The old one ends after ``overlap``.

        The new one holds until ``expires_at``; when that is left out, for as long as the old one held from its making.

        Raises:
            NotFound: the tenant has no such key.
            KeyNotRotatable: it is revoked, expired or rotated already.
        """
        text, at = keys.new_key(), datetime.now(UTC)

        def successor(old: StoredKey) -> StoredKey:
            return replace(
                old,
                id=text.id,
                secret_hash=keys.hash_secret(text.secret),
                created_at=at,
                expires_at=expires_at or _renewed(old, at),
                replaced_by=None,
            )

        return NewKey(str(text), await self._store.rotate_key(scope, key_id, successor, at, overlap))

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


def _renewed(old: StoredKey, at: datetime) -> datetime:
    """The expiry of a key that holds from ``at`` for as long as another held from its making."""
    held = old.expires_at - (old.created_at or at)
    return NEVER if old.expires_at == NEVER or held >= NEVER - at else at + held


def _model_of(credential: Credential) -> str | None:
    return credential.model[:MAX_HEADER_CHARACTERS] if credential.model and credential.model.isprintable() else None


def _within(bound: str | None, asked: str | None) -> str | None:
    if bound is not None and asked is not None and asked != bound:
        raise NotFound
    return bound if bound is not None else asked
