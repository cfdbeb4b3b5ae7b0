"""Retention in the graph: the rules of a tenant, what is over its time, and which tenants the job that erases it has to look after (U13)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from graph import order_keys
from graph.audit_store import AuditStore
from graph.connection import Database, WriteTransaction
from graph.erasure_store import STEP_DEADLINE_S, ErasureStore
from graph.model.audit import AuditAction
from graph.model.base import parse
from graph.model.erasure import Refuses
from graph.model.retention import RetainedKind, Retention
from graph.model.scope import AuthorizedScope
from graph.statements import Row
from graph.tenant_lock import lock_tenant

UNITS_AT_ONCE = 100
EVENTS_AT_ONCE = 1_000
COUNT_DEADLINE_S = 60.0
AHEAD = timedelta(days=1)
"""Units are ordered by when they happened, at most so far after they were recorded; see ``graph.unit_rows``."""


@dataclass(frozen=True, slots=True)
class TenantAtWork:
    """A tenant that the background job has to look after."""

    tenant_id: str
    erasing: bool


@dataclass(frozen=True, slots=True)
class Due:
    """What is over its time at a moment."""

    units: dict[str, object]
    """Parameters of the statements that find units."""
    event_keys: tuple[str, str] | None
    """Range of the events; None when they stay for ever."""

    @staticmethod
    def at(now: datetime, scope: AuthorizedScope, retention: Retention) -> Due:
        """By the rules of the scope's tenant."""
        from_key, to_key = order_keys.whole_range(scope.tenant_id)
        rules = retention.units
        cutoffs = {kind.value: order_keys.microseconds(now - timedelta(days=rule.days)) for kind, rule in rules.items()}
        if cutoffs:
            newest = max(cutoffs.values()) + order_keys.microseconds(now + AHEAD) - order_keys.microseconds(now)
            to_key = f"{from_key}{newest:018d}!"
        units: dict[str, object] = {
            "from_key": from_key,
            "to_key": to_key,
            "cutoffs": cutoffs,
            "authority_kinds": [kind.value for kind, rule in rules.items() if rule.authority],
        }
        days = retention.event_days
        events = None if days is None else (from_key, f"{from_key}{order_keys.microseconds(now - timedelta(days=days)):018d}")
        return Due(units, events)


class RetentionStore:
    """Reads and writes rules, and erases by them."""

    def __init__(self, database: Database, audit: AuditStore, erasures: ErasureStore) -> None:
        self._database = database
        self._audit = audit
        self._erasures = erasures

    async def rules(self, scope: AuthorizedScope) -> Retention:
        """The tenant's rules; none for a tenant that has set none."""
        rows = await self._database.read("erasure/read_retention", scope)
        told = rows[0]["retention"] if rows else None
        return Retention() if told is None else parse(Retention, str(told))

    async def set_rules(self, scope: AuthorizedScope, retention: Retention, reason: str | None = None) -> None:
        """Put rules in the place of those before."""

        async def work(transaction: WriteTransaction) -> None:
            await lock_tenant(transaction, scope)
            await transaction.run("erasure/write_retention", scope, retention=retention.model_dump_json())
            numbers = {rule.kind.value: rule.days for rule in retention.rules}
            await self._audit.append(transaction, scope, AuditAction.RETENTION_CHANGED, "retention", reason=reason, numbers=numbers)

        await self._database.write("erasure/write_retention", work)

    async def count(self, scope: AuthorizedScope, due: Due) -> dict[str, int]:
        """How much is over its time, by kind. Changes nothing."""
        counts: dict[str, int] = {}
        if due.units["cutoffs"]:
            rows = await self._database.read("erasure/count_due_units", scope, deadline_s=COUNT_DEADLINE_S, **due.units)
            counts = {str(row["kind"]): int(row["due"]) for row in rows}
        if due.event_keys is not None:
            rows = await self._database.read(
                "erasure/count_due_events", scope, deadline_s=COUNT_DEADLINE_S, from_key=due.event_keys[0], to_key=due.event_keys[1]
            )
            counts[RetainedKind.EVENT.value] = int(rows[0]["due"])
        return {kind: number for kind, number in sorted(counts.items()) if number}

    async def erase_units(self, scope: AuthorizedScope, due: Due, from_key: str) -> tuple[list[str], str | None]:
        """Erase some of the units that are due, oldest first: their kinds, and where to go on, or None when there are no more.

        What stood on them is marked when this returns.
        """
        erasure_id = secrets.token_hex(12)

        async def work(transaction: WriteTransaction) -> tuple[list[Row], bool]:
            await lock_tenant(transaction, scope)
            found = await transaction.run("erasure/find_due_units", scope, limit=UNITS_AT_ONCE, **{**due.units, "from_key": from_key})
            if not found:
                return [], True
            await self._note(transaction, scope, _by_kind(found))
            return found, await self._erasures.erase_in(transaction, scope, found, erasure_id, Refuses.ID)

        found, through = await self._database.write("erasure/find_due_units", work, deadline_s=STEP_DEADLINE_S)
        if not through:
            await self._erasures.go_on(scope, erasure_id)
        following = str(found[-1]["order_key"]) if len(found) == UNITS_AT_ONCE else None
        return [str(row["kind"]) for row in found], following

    async def delete_events(self, scope: AuthorizedScope, due: Due) -> int:
        """Delete some of the events that are due; how many."""
        keys = due.event_keys
        if keys is None:
            return 0

        async def work(transaction: WriteTransaction) -> int:
            await lock_tenant(transaction, scope)
            rows = await transaction.run("erasure/delete_due_events", scope, from_key=keys[0], to_key=keys[1], limit=EVENTS_AT_ONCE)
            deleted = int(rows[0]["deleted"]) if rows else 0
            if deleted:
                await self._note(transaction, scope, {RetainedKind.EVENT.value: deleted})
            return deleted

        return await self._database.write("erasure/delete_due_events", work)

    async def _note(self, transaction: WriteTransaction, scope: AuthorizedScope, numbers: Mapping[str, int]) -> None:
        await self._audit.append(transaction, scope, AuditAction.RETENTION_APPLIED, "retention", numbers=numbers)

    # --- the job --------------------------------------------------------------------------------------------------------------------

    async def tenants_at_work(self) -> list[TenantAtWork]:
        """Tenants with rules, and tenants whose erasure is not through."""
        rows = await self._database.read("erasure/list_tenants_at_work")
        return [TenantAtWork(str(row["tenant_id"]), bool(row["erasing"])) for row in rows]


def _by_kind(found: list[Row]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in found:
        counts[str(row["kind"])] = counts.get(str(row["kind"]), 0) + 1
    return counts
