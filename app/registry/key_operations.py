"""Keys of a tenant for every door: made, listed, rotated, revoked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

from app.registry.registry import Registry
from graph.model.errors import Forbidden, InvalidField
from graph.model.keys import CreatedKey, KeyList, KeyRequest, KeyView, RotationRequest
from graph.model.scope import AuthorizedScope
from graph.registry_store import NEVER, StoredKey


class KeyOperations(Protocol):
    """What an admin can do with the keys of the tenant."""

    async def create_key(self, asked: KeyRequest) -> CreatedKey: ...
    async def list_keys(self) -> KeyList: ...
    async def rotate_key(self, key_id: str, asked: RotationRequest) -> CreatedKey: ...
    async def revoke_key(self, key_id: str) -> None: ...


class RegistryKeys:
    """On a registry that this process runs, within a scope that may manage keys."""

    def __init__(self, registry: Registry, scope: AuthorizedScope) -> None:
        """Raises Forbidden for a key that is bound to a part of the tenant: it could make one that is not."""
        if scope.principal.is_bound:
            raise Forbidden("A key that is bound to an organisation or assessment cannot manage keys.")
        self._registry = registry
        self._scope = scope

    async def create_key(self, asked: KeyRequest) -> CreatedKey:
        """Make a key.

        Raises:
            InvalidField: it would already have expired.
        """
        _check_expiry(asked.expires_at)
        made = await self._registry.create_key(
            self._scope, agent_id=asked.agent_id, role=asked.role, expires_at=asked.expires_at, bound=asked.bound
        )
        return CreatedKey(**view_of(made.stored).model_dump(), key=made.text)

    async def rotate_key(self, key_id: str, asked: RotationRequest) -> CreatedKey:
        """Make a key that takes the place of another, which goes on for the overlap.

        Raises:
            InvalidField: the new one would already have expired.
            NotFound: the tenant has no such key.
            KeyNotRotatable: it is revoked, expired or rotated already.
        """
        _check_expiry(asked.expires_at)
        overlap = timedelta(seconds=asked.overlap_s)
        made = await self._registry.rotate_key(self._scope, key_id, overlap=overlap, expires_at=asked.expires_at)
        return CreatedKey(**view_of(made.stored).model_dump(), key=made.text)

    async def list_keys(self) -> KeyList:
        return KeyList(keys=[view_of(key) for key in await self._registry.list_keys(self._scope)])

    async def revoke_key(self, key_id: str) -> None:
        await self._registry.revoke_key(self._scope, key_id)


def _check_expiry(expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= datetime.now(UTC):
        raise InvalidField("The key would already have expired.").at(field="expires_at")


def view_of(key: StoredKey) -> KeyView:
    """What may be told of a stored key."""
    return KeyView(
        id=key.id,
        tenant_id=key.tenant_id,
        agent_id=key.agent_id,
        role=key.role,
        organization_id=key.bound.organization_id,
        assessment_id=key.bound.assessment_id,
        expires_at=None if key.expires_at == NEVER else key.expires_at,
        state=_state(key),
        replaced_by=key.replaced_by,
    )


def _state(key: StoredKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at <= datetime.now(UTC) else "active"
