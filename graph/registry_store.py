"""Tenants and API keys in the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from graph.audit_store import AuditStore
from graph.connection import Database, WriteTransaction
from graph.model.audit import AuditAction
from graph.model.errors import DatabaseUnavailable, DeadlineExceeded, KeyNotRotatable, NotFound
from graph.model.scope import AuthorizedScope, Role
from graph.model.units import Scope
from graph.statements import Row
from graph.tenant_lock import LOCAL_KEY_ID, lock_tenant
from graph.unit_rows import as_datetime

IDENTIFY_DEADLINE_S = 2.0
NEVER = datetime.fromisoformat("9999-12-31T00:00:00+00:00")
"""Expiry of a key without one; a null would be a case of its own in every statement."""


@dataclass(frozen=True, slots=True)
class Epochs:
    """Numbers of a tenant that say whether something in it has changed since they were read before."""

    all: int = 0
    """Raised by every write, erasure and change of keys, policies and teams."""
    policies: int = 0
    """Raised by changes of policies and teams alone; 0 when there never were any."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as stored: never its secret."""

    id: str
    tenant_id: str
    agent_id: str
    role: Role
    bound: Scope
    expires_at: datetime
    revoked_at: datetime | None
    created_at: datetime | None = None
    secret_hash: str = ""
    replaced_by: str | None = None
    """The key that it was rotated into."""
    epochs: Epochs = Epochs()
    """The tenant's, read together with the key."""


class RegistryStore:
    """Reads and writes tenants and keys."""

    def __init__(self, database: Database, audit: AuditStore) -> None:
        self._database = database
        self._audit = audit

    async def epochs(self, scope: AuthorizedScope) -> Epochs | None:
        """As they are read with a key, for callers that come without one; None when there is no such tenant.

        Raises:
            DatabaseUnavailable: as ``find_key``.
        """
        try:
            rows = await self._database.read("policies/read_epochs", scope, deadline_s=IDENTIFY_DEADLINE_S)
        except DeadlineExceeded:
            raise DatabaseUnavailable(retry_after_s=2) from None
        return _epochs(rows[0]) if rows else None

    async def find_key(self, key_id: str) -> StoredKey | None:
        """A key by its public id, of whatever tenant; None when there is none.

        Raises:
            DatabaseUnavailable: also when the database is silent: who asks cannot be told, which is no matter of a query's deadline.
        """
        try:
            rows = await self._database.read("registry/read_api_key_by_id", key_id=key_id, deadline_s=IDENTIFY_DEADLINE_S)
        except DeadlineExceeded:
            raise DatabaseUnavailable(retry_after_s=2) from None
        return _key(rows[0], str(rows[0]["tenant_id"])) if rows else None

    async def create_key(self, scope: AuthorizedScope, key: StoredKey, created_at: datetime) -> None:
        """Store a key, and its tenant if this is the tenant's first, which is made on the store itself alone.

        Raises:
            TenantBeingErased: the tenant takes no keys any more.
        """

        async def work(transaction: WriteTransaction) -> None:
            if scope.principal.key_id == LOCAL_KEY_ID:
                await transaction.run("registry/create_tenant", scope)
            await lock_tenant(transaction, scope)
            if await transaction.run("registry/read_api_key", scope, key_id=key.id):
                return  # stored by a first run whose answer was lost
            await self._create(transaction, scope, key, created_at)

        await self._database.write("registry/create_api_key", work)

    async def rotate_key(
        self, scope: AuthorizedScope, key_id: str, successor: Callable[[StoredKey], StoredKey], at: datetime, overlap: timedelta
    ) -> StoredKey:
        """Store the key that ``successor`` makes of one of the tenant, and let that one end after ``overlap``: at once, for none.

        Raises:
            NotFound: the tenant has no such key.
            KeyNotRotatable: it is revoked, expired or rotated already.
        """

        async def work(transaction: WriteTransaction) -> StoredKey:
            await lock_tenant(transaction, scope)
            rows = await transaction.run("registry/read_api_key", scope, key_id=key_id)
            if not rows:
                raise NotFound
            old = _key(rows[0], scope.tenant_id)
            new = successor(old)
            if old.replaced_by == new.id:  # stored by a first run whose answer was lost
                return _key((await transaction.run("registry/read_api_key", scope, key_id=new.id))[0], scope.tenant_id)
            if old.replaced_by is not None or old.revoked_at is not None or old.expires_at <= at:
                raise KeyNotRotatable
            await self._create(transaction, scope, new, at)
            ends = min(old.expires_at, at + overlap)
            await transaction.run("registry/replace_api_key", scope, key_id=key_id, replaced_by=new.id, expires_at=ends.isoformat())
            if not overlap:
                # Not left to the expiry: the clock of another replica may be behind.
                await transaction.run("registry/revoke_api_key", scope, key_id=key_id, revoked_at=at.isoformat())
            numbers = {"overlap_s": int(overlap.total_seconds())}
            await self._audit.append(transaction, scope, AuditAction.KEY_ROTATED, key_id, numbers=numbers)
            return new

        return await self._database.write("registry/replace_api_key", work)

    async def _create(self, transaction: WriteTransaction, scope: AuthorizedScope, key: StoredKey, created_at: datetime) -> None:
        await transaction.run(
            "registry/create_api_key",
            scope,
            key_id=key.id,
            secret_hash=key.secret_hash,
            agent_id=key.agent_id,
            role=key.role.value,
            organization_id=key.bound.organization_id,
            assessment_id=key.bound.assessment_id,
            created_at=created_at.isoformat(),
            expires_at=key.expires_at.isoformat(),
        )
        await self._audit.append(transaction, scope, AuditAction.KEY_CREATED, key.id)

    async def list_keys(self, scope: AuthorizedScope) -> list[StoredKey]:
        """The tenant's keys, newest first."""
        rows = await self._database.read("registry/list_api_keys", scope)
        return [_key(row, scope.tenant_id) for row in rows]

    async def revoke_key(self, scope: AuthorizedScope, key_id: str, at: datetime) -> None:
        """Revoke a key of the tenant.

        Raises:
            NotFound: the tenant has no such key.
        """

        async def work(transaction: WriteTransaction) -> None:
            await lock_tenant(transaction, scope)
            rows = await transaction.run("registry/read_api_key", scope, key_id=key_id)
            if not rows:
                raise NotFound
            if rows[0]["revoked_at"] is None:
                await transaction.run("registry/revoke_api_key", scope, key_id=key_id, revoked_at=at.isoformat())
                await self._audit.append(transaction, scope, AuditAction.KEY_REVOKED, key_id)

        await self._database.write("registry/revoke_api_key", work)

    async def ensure_tenant(self, scope: AuthorizedScope) -> None:
        """Make the tenant's guard node; for local use, where no key is created first."""

        async def work(transaction: WriteTransaction) -> None:
            await transaction.run("registry/create_tenant", scope)

        await self._database.write("registry/create_tenant", work)


def _key(row: Row, tenant_id: str) -> StoredKey:
    return StoredKey(
        id=row["id"],
        tenant_id=tenant_id,
        agent_id=row["agent_id"],
        role=Role(row["role"]),
        bound=Scope(organization_id=row["organization_id"], assessment_id=row["assessment_id"]),
        expires_at=as_datetime(row["expires_at"]),
        revoked_at=None if row["revoked_at"] is None else as_datetime(row["revoked_at"]),
        created_at=as_datetime(row["created_at"]) if row.get("created_at") is not None else None,
        secret_hash=str(row.get("secret_hash", "")),
        replaced_by=row.get("replaced_by"),
        epochs=_epochs(row),
    )


def _epochs(row: Row) -> Epochs:
    return Epochs(all=int(row.get("epoch") or 0), policies=int(row.get("policy_epoch") or 0))
