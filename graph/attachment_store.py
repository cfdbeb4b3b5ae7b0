"""Which originals are stored, for whom, and which units name them (U14). The bytes lie elsewhere; see app/attachments.

An original belongs to the agent that stored it, in its place: each counts for its own quota, and nobody learns from the store that another
has the same file. A unit opens an original that its own agent stored; to know a digest is not enough. See
docs/decisions/0017.

States: ``pending`` (room is taken, the bytes may not be there yet), ``stored``, ``doomed`` (to be removed). ``due_us`` is when it is removed
if no unit names it until then; 0 for doomed ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from graph.connection import Database, WriteTransaction
from graph.model.attachments import StoredAttachment, object_key
from graph.model.errors import AttachmentBusy, NotFound
from graph.model.quota import StoredShare
from graph.model.scope import AuthorizedScope, scope_key
from graph.model.units import ContextUnit, Scope
from graph.order_keys import microseconds
from graph.quota_store import QuotaStore
from graph.tenant_lock import lock_tenant

REMOVE_DEADLINE_S = 60.0
"""For one removal, in which the target that holds the bytes has its say too."""
SWEPT_AT_ONCE = 100
"""Originals that one look of the background job finds."""


@dataclass(frozen=True, slots=True)
class Original:
    """An original of a caller, with the key of its node and that of its bytes."""

    key: str
    object_key: str


@dataclass(frozen=True, slots=True)
class Readable:
    """An original that a caller may read, and the unit that opens it."""

    unit_id: str
    object_key: str
    attachment: StoredAttachment


@dataclass(frozen=True, slots=True)
class DueOriginal:
    """An original that is to be removed."""

    tenant_id: str
    key: str


class AttachmentStore:
    """Reads and writes what the graph knows of originals."""

    def __init__(self, database: Database, quotas: QuotaStore) -> None:
        self._database = database
        self._quotas = quotas

    async def reserve(self, scope: AuthorizedScope, attachment: StoredAttachment, *, keep_s: float) -> Original:
        """Take room for an original that the caller brings, in the caller's place; its bytes count from here on.

        It is removed after ``keep_s`` seconds unless a unit names it.

        Raises:
            QuotaExceeded: a limit of bytes would be passed; nothing is kept.
            AttachmentBusy: the same original is being removed.
            DatabaseBusy, DatabaseUnavailable.
        """
        principal = scope.principal
        place = Scope(organization_id=scope.organization_id, assessment_id=scope.assessment_id)
        found = Original(
            _key(attachment.sha256, principal.agent_id, scope_key(place.organization_id, place.assessment_id)),
            object_key(scope.tenant_id, place, attachment.sha256),
        )
        properties: dict[str, object] = {
            "object_key": found.object_key,
            "scope_key": scope_key(place.organization_id, place.assessment_id),
            "agent_id": principal.agent_id,
            "session_id": principal.session_id,
            "team_ids": sorted(principal.teams),
            "bytes": attachment.bytes,
            "media_type": attachment.media_type,
            "state": "pending",
            "due_us": microseconds(datetime.now(UTC)) + int(keep_s * 1e6),
        }

        async def work(transaction: WriteTransaction) -> None:
            await lock_tenant(transaction, scope)
            rows = await transaction.run("attachments/read_original", scope, key=found.key)
            if rows:
                if rows[0]["state"] == "doomed":
                    raise AttachmentBusy
                return
            share = StoredShare(principal.agent_id, principal.session_id, tuple(sorted(principal.teams)), attachment.bytes, units=0)
            await self._quotas.charge(transaction, scope, [share])
            await transaction.run("attachments/create_original", scope, key=found.key, sha256=attachment.sha256, properties=properties)

        await self._database.write("attachments/create_original", work)
        return found

    async def stored(self, scope: AuthorizedScope, original: Original, remove: Callable[[str], Awaitable[None]]) -> None:
        """The bytes are in place. Where the original was removed meanwhile, they are removed too.

        Raises:
            AttachmentBusy: that happened; send it again.
        """

        async def work(transaction: WriteTransaction) -> bool:
            await lock_tenant(transaction, scope)
            if await transaction.run("attachments/mark_stored", scope, key=original.key):
                if await _named(transaction, scope, original.key):
                    await transaction.run("attachments/keep_original", scope, key=original.key)
                return True
            # Under the tenant's lock: nobody else puts or removes bytes of this key now, unless another has room for them.
            if not await transaction.run("attachments/read_original", scope, key=original.key):
                await remove(original.object_key)
            return False

        if not await self._database.write("attachments/mark_stored", work):
            raise AttachmentBusy

    async def find(self, scope: AuthorizedScope, sha256: str) -> Readable:
        """An original that some unit opens which the caller sees.

        Raises:
            NotFound: there is none; the same whether nobody stored it, or no unit that the caller sees names it.
        """
        rows = await self._database.read("attachments/find_readable", scope, sha256=sha256)
        if not rows:
            raise NotFound
        row = rows[0]
        told = StoredAttachment(sha256=sha256, bytes=int(row["bytes"]), media_type=str(row["media_type"]))
        return Readable(str(row["unit_id"]), str(row["object_key"]), told)

    # --- removal --------------------------------------------------------------------------------------------------------------------

    async def due(self, at: datetime) -> list[DueOriginal]:
        """Some originals of all tenants whose time is up."""
        rows = await self._database.read("attachments/list_due", before_us=microseconds(at), limit=SWEPT_AT_ONCE)
        return [DueOriginal(str(row["tenant_id"]), str(row["key"])) for row in rows]

    async def doomed(self, scope: AuthorizedScope) -> list[str]:
        """Some originals of the scope's tenant that are being removed."""
        rows = await self._database.read("attachments/list_doomed_of_tenant", scope, limit=SWEPT_AT_ONCE)
        return [str(row["key"]) for row in rows]

    async def remove(self, scope: AuthorizedScope, key: str, remove: Callable[[str], Awaitable[None]], at: datetime) -> bool:
        """Remove an original for good, its bytes first, if it is still due; whether it was.

        The bytes go while the tenant's lock is held: whoever brings the same ones waits for room, and puts them in place afterwards.
        """
        now_us = microseconds(at)

        async def work(transaction: WriteTransaction) -> bool:
            await lock_tenant(transaction, scope)
            rows = await transaction.run("attachments/read_due", scope, key=key)
            if not rows or rows[0]["due_us"] is None or int(rows[0]["due_us"]) >= now_us:
                return False
            row = rows[0]
            if row["state"] == "stored" and await _named(transaction, scope, key):
                await transaction.run("attachments/keep_original", scope, key=key)
                return False
            sharers = await transaction.run("attachments/count_sharers", scope, key=key)
            if not sharers or not int(sharers[0]["sharers"]):
                await remove(str(row["object_key"]))
            teams = tuple(str(team) for team in row["team_ids"] or ())
            await self._quotas.release(
                transaction, scope, [StoredShare(str(row["agent_id"]), row["session_id"], teams, int(row["bytes"]), units=0)]
            )
            await transaction.run("attachments/delete_original", scope, key=key)
            return True

        return await self._database.write("attachments/delete_original", work, deadline_s=REMOVE_DEADLINE_S)


async def link_attachments(transaction: WriteTransaction, scope: AuthorizedScope, units: Sequence[ContextUnit]) -> None:
    """What new units name, within the transaction that creates them."""
    rows = [{"id": unit.id, "digests": sorted({each.sha256 for each in unit.attachments})} for unit in units if unit.attachments]
    if rows:
        await transaction.run("attachments/link_attachments", scope, rows=rows)
        await transaction.run("attachments/keep_named", scope, ids=[row["id"] for row in rows])


async def release_attachments(transaction: WriteTransaction, scope: AuthorizedScope, ids: Sequence[str]) -> None:
    """Units are about to be erased, within this transaction: what only they open is doomed with them."""
    found = await transaction.run("attachments/find_originals_of_units", scope, ids=list(ids))
    await transaction.run("attachments/cut_attachments", scope, ids=list(ids))
    doomed = [str(row["key"]) for row in found if not await _named(transaction, scope, str(row["key"]))]
    if doomed:
        await transaction.run("attachments/doom_originals", scope, keys=doomed)


async def _named(transaction: WriteTransaction, scope: AuthorizedScope, key: str) -> bool:
    """Whether some unit opens an original."""
    rows = await transaction.run("attachments/count_namers", scope, key=key)
    return bool(rows) and int(rows[0]["namers"]) > 0


def _key(sha256: str, agent_id: str, place: str) -> str:
    """Ids hold no space; a place's key has at most one, and stands last."""
    return f"{sha256} {agent_id} {place}"
