"""The first statement of a tenant's writing transactions."""

from __future__ import annotations

from dataclasses import dataclass

from neo4j.exceptions import TransientError

from graph.connection import WriteTransaction
from graph.model.errors import TenantBeingErased
from graph.model.scope import AuthorizedScope

LOCAL_KEY_ID = "local"
"""Stands for the key of whoever runs a command on the store itself."""
OIDC_KEY_ID = "oidc"
"""Stands for the key of a principal that came with a token of an OIDC issuer."""


@dataclass(frozen=True, slots=True)
class LockedTenant:
    """What a writer must know of the tenant that it locked."""

    tombstones: bool
    """Whether something was erased: then a new unit is compared with what must not come back."""


async def lock_tenant(transaction: WriteTransaction, scope: AuthorizedScope) -> LockedTenant:
    """Queue behind the tenant's other writers, and raise its epoch.

    A tenant that only tokens have named so far is made here, by its first write: the registry lets such a token in only where the settings
    allow new tenants. Every other tenant was made with its first key.

    Raises:
        TenantBeingErased: nothing of this tenant is written any more.
    """
    rows = await transaction.run("units/lock_tenant", scope)
    if not rows and scope.principal.key_id == OIDC_KEY_ID:
        await transaction.run("registry/create_tenant", scope)
        rows = await transaction.run("units/lock_tenant", scope)
        if not rows:
            # Made by another transaction that this one does not see whole (embedded engine): begun again, it does.
            raise TransientError("another made the tenant meanwhile")
    gone = not rows and scope.principal.key_id != LOCAL_KEY_ID
    if gone or (rows and rows[0]["erasing"]):
        # Gone: the request came with a key that was right a moment ago. What it wrote would be there for who makes the name anew.
        raise TenantBeingErased
    return LockedTenant(tombstones=bool(rows and rows[0]["tombstones"]))


async def hold_tenant(transaction: WriteTransaction, scope: AuthorizedScope) -> None:
    """The same for a write that changes nothing an answer could show, such as the trail of a read: the epoch stays as it is.

    Raises:
        TenantBeingErased: nothing of this tenant is written any more.
    """
    rows = await transaction.run("audit/hold_tenant", scope)
    if not rows or rows[0]["erasing"]:
        raise TenantBeingErased
