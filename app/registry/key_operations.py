"""Keys of a tenant for every door: made, listed, revoked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol

from app.registry.registry import Registry
from graph.model.errors import Forbidden, InvalidField
from graph.model.keys import CreatedKey, KeyList, KeyRequest, KeyView
from graph.model.scope import AuthorizedScope
from graph.model.units import Scope
from graph.registry_store import NEVER, StoredKey


class KeyOperations(Protocol):
    """What an admin can do with the keys of the tenant."""

    async def create_key(self, asked: KeyRequest) -> CreatedKey: ...
    async def list_keys(self) -> KeyList: ...
    async def revoke_key(self, key_id: str) -> None: ...


class RegistryKeys:
    """On a registry that this process runs, within a scope that may manage keys."""

    def __init__(self, registry: Registry, scope: AuthorizedScope) -> None:
        """Raises Forbidden for a key that is bound to a part of the tenant: it could make one that is not."""
        if scope.principal.bound != Scope():
            raise Forbidden("A key that is bound to an organisation or assessment cannot manage keys.")
        self._registry = registry
        self._scope = scope

    async def create_key(self, asked: KeyRequest) -> CreatedKey:
        """Make a key.

        Raises:
            InvalidField: it would already have expired.
        """
        if asked.expires_at is not None and asked.expires_at <= datetime.now(UTC):
            raise InvalidField("The key would already have expired.").at(field="expires_at")
        made = await self._registry.create_key(
            self._scope, agent_id=asked.agent_id, role=asked.role, expires_at=asked.expires_at, bound=asked.bound
        )
        return CreatedKey(**view_of(made.stored).model_dump(), key=made.text)

    async def list_keys(self) -> KeyList:
        return KeyList(keys=[view_of(key) for key in await self._registry.list_keys(self._scope)])

    async def revoke_key(self, key_id: str) -> None:
        await self._registry.revoke_key(self._scope, key_id)


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
    )


def _state(key: StoredKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at <= datetime.now(UTC) else "active"
