"""Erasure in the graph: units lose everything at once, what stood on them is marked, a keyed hash refuses them for good (U12).

An erasure is one transaction in which the unit goes out of everybody's sight, and, where very much stood on it, further ones that remove
the edges to what is left of it and carry the mark on. What those still have to do is kept in an ``Erasure`` node, so that any process can
go on with it after a crash.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic

from graph.attachment_store import release_attachments
from graph.audit_store import AuditStore
from graph.connection import Database, WriteTransaction
from graph.model.audit import AuditAction
from graph.model.erasure import Refuses, TombstoneKeys
from graph.model.errors import DatabaseBusy, Forbidden, NotFound
from graph.model.quota import StoredShare, stored_bytes
from graph.model.scope import AuthorizedScope, Role
from graph.model.units import EdgeType, Trust
from graph.quota_store import QuotaStore
from graph.statements import Row
from graph.tenant_lock import lock_tenant

EDGES_AT_ONCE = 500
"""Edges to an erased unit that one transaction removes, and units that it marks. On the embedded engine an edge of a hub of 20,000 takes about
a millisecond and more at larger ones, and writers of the tenant wait."""
FEWEST_AT_ONCE = 20
"""A transaction that takes too long is tried again with fewer, down to this."""
STEP_DEADLINE_S = 60.0
"""For one transaction of an erasure."""
SPREAD_AT_ONCE = 200
"""Marked units that one transaction looks behind."""
LISTED = 8
"""Superseders and results that a unit keeps the ids of; see docs/decisions/0003."""
LEFT_ALONE_S = 30
"""Younger erasures are still in the hands of who began them."""
DERIVED = {EdgeType.PROVENANCE.value.upper(), EdgeType.DEPENDENCY.value.upper()}
"""Edges from what was derived. A mark goes on from there, along PROVENANCE."""


@dataclass(frozen=True, slots=True)
class OpenErasure:
    """An erasure that is not through."""

    tenant_id: str
    id: str


class ErasureStore:
    """Erases units of a tenant."""

    def __init__(self, database: Database, audit: AuditStore, tombstones: TombstoneKeys, quotas: QuotaStore) -> None:
        self._quotas = quotas
        self._database = database
        self._audit = audit
        self._tombstones = tombstones

    async def erase(
        self, scope: AuthorizedScope, unit_id: str, *, reason: str | None, refuses: Refuses, within_s: float = float("inf")
    ) -> str:
        """Erase a unit that the caller may see: gone when this returns, and its tombstone's id is the answer.

        What stood on it is marked before this returns, or, after ``within_s`` seconds, by whoever calls ``go_on`` next.

        Raises:
            NotFound: it does not exist for this caller, or was erased before.
            Forbidden: an agent wants to erase what another wrote or what is published, or a reviewer what lies outside of its bounds.
            DatabaseBusy, DatabaseUnavailable: it may or may not be erased; asking again tells.
        """
        erasure_id = secrets.token_hex(12)
        tombstone = self._tombstones.of(scope.tenant_id).of_id(unit_id)

        async def work(transaction: WriteTransaction) -> bool:
            await lock_tenant(transaction, scope)
            found = await transaction.run("erasure/find_units", scope, ids=[unit_id])
            if not found:
                # A commit whose answer was lost is run again, and finds its own work.
                kept = await transaction.run("erasure/read_tombstones", scope, hashes=[tombstone])
                if kept and kept[0]["erasure_id"] == erasure_id:
                    return False
                raise NotFound
            _check_erasable(scope, found[0])
            await self._audit.append(transaction, scope, AuditAction.UNIT_ERASED, tombstone, reason=reason, numbers={"units": 1})
            by_agent = scope.principal.agent_id if scope.principal.role is Role.AGENT else None
            return await self.erase_in(transaction, scope, found, erasure_id, refuses, by_agent=by_agent)

        if not await self._database.write("erasure/strip_units", work, deadline_s=STEP_DEADLINE_S):
            await self.go_on(scope, erasure_id, within_s=within_s)
        return tombstone

    async def erase_in(
        self,
        transaction: WriteTransaction,
        scope: AuthorizedScope,
        found: Sequence[Row],
        erasure_id: str,
        refuses: Refuses,
        *,
        by_agent: str | None = None,
    ) -> bool:
        """Erase units (rows of ``erasure/find_units``) within a transaction that holds the tenant's lock. Whether it is through.

        ``by_agent`` names the agent that erases its own: then its value is refused from that agent, and others may go on saying it.
        Where it is not, ``go_on`` has to be called once the transaction is committed.
        """
        key = self._tombstones.of(scope.tenant_id)
        ids = [str(row["id"]) for row in found]
        hashes = {key.of_id(unit_id): "id" for unit_id in ids}
        if refuses is Refuses.VALUE:
            hashes |= {key.of_value(str(row["content"]), by_agent): "value" for row in found}
        at = datetime.now(UTC).isoformat()
        marks = [{"id": hashed, "of": what} for hashed, what in hashes.items()]
        await transaction.run("erasure/create_tombstones", scope, rows=marks, erasure_id=erasure_id, at=at)
        await self._quotas.release(transaction, scope, [_share(row) for row in found])
        await self._forget_in_lists(transaction, scope, ids)
        await transaction.run("erasure/create_erasure", scope, erasure_id=erasure_id, at=at)
        await transaction.run("erasure/release_entities", scope, ids=ids)
        await release_attachments(transaction, scope, ids)
        await transaction.run("erasure/cut_outgoing", scope, ids=ids)
        # An id of a unit holds no space, so nobody can ask for a shell's.
        shells = [{"id": unit_id, "shell_id": f"erased {secrets.token_hex(12)}"} for unit_id in ids]
        await transaction.run("erasure/strip_units", scope, erasure_id=erasure_id, rows=shells)
        return await self._step(transaction, scope, erasure_id, EDGES_AT_ONCE)

    async def go_on(self, scope: AuthorizedScope, erasure_id: str, *, within_s: float = float("inf")) -> bool:
        """Further transactions of an erasure until it is through (True), or ``within_s`` seconds have passed."""
        ends = monotonic() + within_s
        limit = EDGES_AT_ONCE

        async def work(transaction: WriteTransaction) -> bool:
            await lock_tenant(transaction, scope)
            return await self._step(transaction, scope, erasure_id, limit)

        while monotonic() < ends:
            try:
                if await self._database.write("erasure/release_sources", work, deadline_s=STEP_DEADLINE_S):
                    return True
            except DatabaseBusy:
                if limit <= FEWEST_AT_ONCE:
                    raise
                limit //= 4
        return False

    async def open_erasures(self, *, older_than_s: float = LEFT_ALONE_S) -> list[OpenErasure]:
        """Erasures of all tenants that are not through and that nobody seems to be working on."""
        before = datetime.now(UTC) - timedelta(seconds=older_than_s)
        rows = await self._database.read("erasure/list_erasures", before=before.isoformat())
        return [OpenErasure(str(row["tenant_id"]), str(row["id"])) for row in rows]

    async def _step(self, transaction: WriteTransaction, scope: AuthorizedScope, erasure_id: str, limit: int) -> bool:
        """One transaction's share of removing edges and marking; True when nothing is left to do and the shells are deleted."""
        released = await transaction.run("erasure/release_sources", scope, erasure_id=erasure_id, limit=limit)
        derived = sorted({str(row["id"]) for row in released if row["edge_type"] in DERIVED})
        if derived:
            await transaction.run("erasure/spread_to", scope, erasure_id=erasure_id, ids=derived)
        if len(released) == limit:
            return False
        spreading = await transaction.run("erasure/list_spreading", scope, erasure_id=erasure_id, limit=SPREAD_AT_ONCE)
        if spreading:
            sources = [str(row["id"]) for row in spreading]
            rows = await transaction.run("erasure/mark_derived", scope, ids=sources, limit=limit)
            marked = [str(row["id"]) for row in rows]
            if len(marked) < limit:
                await transaction.run("erasure/stop_spreading", scope, erasure_id=erasure_id, ids=sources)
            if marked:
                await transaction.run("erasure/spread_to", scope, erasure_id=erasure_id, ids=marked)
            return False
        await transaction.run("erasure/delete_shells", scope, erasure_id=erasure_id)
        await transaction.run("erasure/delete_erasure", scope, erasure_id=erasure_id)
        return True

    async def _forget_in_lists(self, transaction: WriteTransaction, scope: AuthorizedScope, ids: list[str]) -> None:
        """What they replaced and what they answered no longer names them. Where a list was full, the next in line moves up."""
        gone = set(ids)
        rewritten: list[dict[str, object]] = []
        for row in await transaction.run("erasure/read_lists_naming_units", scope, ids=ids):
            lists: dict[str, list[str]] = {"superseder_ids": row["superseder_ids"], "result_ids": row["result_ids"]}
            if gone.isdisjoint(lists["superseder_ids"]) and gone.isdisjoint(lists["result_ids"]):
                continue
            if len(lists["superseder_ids"]) >= LISTED and not gone.isdisjoint(lists["superseder_ids"]):
                others = await transaction.run("erasure/read_other_superseders", scope, unit_id=row["id"], ids=ids)
                lists["superseder_ids"] = [str(other["id"]) for other in reversed(others)]
            if len(lists["result_ids"]) >= LISTED and not gone.isdisjoint(lists["result_ids"]):
                others = await transaction.run("erasure/read_other_results", scope, unit_id=row["id"], ids=ids)
                lists["result_ids"] = [str(other["id"]) for other in others]
            kept = {name: [other for other in listed if other not in gone] for name, listed in lists.items()}
            rewritten.append({"id": row["id"], **kept})
        if rewritten:
            await transaction.run("erasure/rewrite_lists", scope, rows=rewritten)


def _share(row: Row) -> StoredShare:
    """What an erased unit no longer counts for."""
    teams = tuple(row["team_ids"] or ())
    return StoredShare(str(row["agent_id"]), row["session_id"], teams, stored_bytes(str(row["content"]), row["tool_arguments"]))


def _check_erasable(scope: AuthorizedScope, row: Row) -> None:
    """Seeing is not enough: policies and places above open units for reading."""
    principal = scope.principal
    if principal.role is Role.AGENT:
        own = row["agent_id"] == principal.agent_id and Trust(str(row["trust"])) in principal.role.trust_levels
        if not own or row["scope_key"] not in scope.own_places:
            raise Forbidden("An agent erases what it wrote itself, and nothing that is published.", hint="Ask an admin of your tenant.")
    elif row["scope_key"] not in scope.own_places or not principal.reviews(str(row["scope_key"])):
        raise Forbidden("The unit is outside of what this key reviews.", hint="Ask an admin of your tenant, in the place of the unit.")
