"""Tiers in the graph: a session's units by tier, what was used, and what goes down (S2).

A unit is moved in one statement that locks it before it looks at it, so none of this waits for the tenant's writers or makes them wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graph import order_keys
from graph.connection import WRITE_DEADLINE_S, Database, WriteTransaction
from graph.context_store import Window
from graph.model.candidates import Candidate
from graph.model.scope import AuthorizedScope
from graph.model.units import Tier
from graph.statements import Row
from graph.unit_rows import candidate

MOVED_AT_ONCE = 500
"""Units that one transaction moves at the most."""
COUNTED = 20_000
"""Newest units of one tier of a session that are counted. Should more be there, the others are counted when these have gone."""
AGED_DEADLINE_S = 20.0
PLACES = len(Tier)


@dataclass(frozen=True, slots=True)
class TierLimits:
    """What an agent's units in one session may hold before the least recently used go down."""

    hot_units: int
    warm_units: int


@dataclass(frozen=True, slots=True)
class Use:
    """That a unit came in answers."""

    unit_id: str
    at_us: int
    """When it last did, microseconds as in ``order_keys``."""
    times: int
    """In how many answers since that was last written down."""


@dataclass(frozen=True, slots=True)
class Aged:
    """A unit whose time in its tier is up."""

    tenant_id: str
    unit_id: str
    tier_age: str
    """Its key in the age index: it is moved only if that is still the same."""


class TierStore:
    """Reads sessions by tier, writes uses down, and moves units between tiers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_session(
        self, scope: AuthorizedScope, session_id: str, window: Window, limit: int, *, deadline_s: float
    ) -> list[Candidate]:
        """Hot units of a session, newest first, then warm, then cold ones: ``limit`` at the most.

        The score is 1 for the newest hot one. Within a tier half of what is above the next tier's best is left eight places later, so every
        hot one is above every warm one, and every warm one above every cold one.
        """
        from_key, to_key = order_keys.whole_range(scope.tenant_id, session_id)
        rows = await self._database.read(
            "tiers/read_units_by_tier_order",
            scope,
            deadline_s=deadline_s,
            from_key=from_key,
            to_key=to_key,
            as_of_us=window.as_of_us,
            limit=limit,
        )
        return _ranked(rows[0]["rows"])

    async def write_uses(self, scope: AuthorizedScope, uses: Iterable[Use], *, deadline_s: float) -> None:
        """Keep when units were used and how often, and put each one tier up. What is kept already changes nothing.

        Raises:
            DatabaseBusy, DatabaseUnavailable: nothing may have been written; the same uses can be told again.
        """
        # In the order of their ids, so that two replicas do not wait for each other in a circle.
        told = [
            {"id": use.unit_id, "at_us": use.at_us, "at": f"{use.at_us:018d}", "times": use.times}
            for use in sorted(uses, key=lambda use: use.unit_id)
        ]

        async def work(transaction: WriteTransaction) -> None:
            rows = await transaction.run("tiers/promote_units", scope, uses=told)
            back = [str(row["id"]) for row in rows if row["was"] == Tier.COLD]
            if back:
                await transaction.run("tiers/return_to_index", scope, ids=back)
            await _mark(transaction, scope, (row for row in rows if row["was"] != Tier.HOT))

        await self._database.write("tiers/promote_units", work, deadline_s=deadline_s)

    # --- the job --------------------------------------------------------------------------------------------------------------------

    async def aged(self, tier: Tier, before_us: int, limit: int, after: str = "") -> list[Aged]:
        """Units of a tier of whatever tenant that were last written or used before a time, the oldest first; after a ``tier_age``."""
        from_key, to_key = order_keys.aged_range(tier, before_us)
        # A key holds no two spaces in a row, nor one at its end: with one added it is what comes right after.
        from_key = f"{after} " if after else from_key
        rows = await self._database.read("tiers/list_aged_units", deadline_s=AGED_DEADLINE_S, from_key=from_key, to_key=to_key, limit=limit)
        return [Aged(str(row["tenant_id"]), str(row["id"]), str(row["tier_age"])) for row in rows]

    async def demote_aged(self, scope: AuthorizedScope, tier: Tier, aged: Sequence[Aged]) -> int:
        """Move a tenant's units of a tier one down, but for those that were used meanwhile; how many were moved."""

        async def work(transaction: WriteTransaction) -> int:
            moved = await _demote(transaction, scope, tier, [{"id": item.unit_id, "tier_age": item.tier_age} for item in aged])
            if tier is Tier.HOT:
                await _mark(transaction, scope, moved)
            return len(moved)

        return await self._database.write("tiers/demote_to_warm", work, deadline_s=WRITE_DEADLINE_S)

    async def grown_sessions(self, limit: int) -> list[tuple[str, str]]:
        """Tenant and id of sessions whose tiers have grown since they were looked at."""
        rows = await self._database.read("tiers/list_grown_sessions", limit=limit)
        return [(str(row["tenant_id"]), str(row["session_id"])) for row in rows]

    async def settle(self, scope: AuthorizedScope, session_id: str, limits: TierLimits) -> bool:
        """One transaction's share of moving down what a session's tiers hold too much of; whether there is more to do.

        Each agent's units are counted for themselves: one that fills a session does not push another's out of sight.
        """

        async def work(transaction: WriteTransaction) -> bool:
            await transaction.run("tiers/unmark_session", scope, session_id=session_id)
            # Warm ones after hot ones, since these come down to them.
            more = [
                await self._settle_tier(transaction, scope, session_id, tier, most)
                for tier, most in ((Tier.HOT, limits.hot_units), (Tier.WARM, limits.warm_units))
            ]
            if any(more):
                await transaction.run("tiers/mark_sessions", scope, session_ids=[session_id])
            return any(more)

        return await self._database.write("tiers/unmark_session", work, deadline_s=WRITE_DEADLINE_S)

    async def _settle_tier(self, transaction: WriteTransaction, scope: AuthorizedScope, session_id: str, tier: Tier, most: int) -> bool:
        """Move some of one tier down; whether there is more."""
        from_key, to_key = order_keys.tier_range(scope.tenant_id, session_id, tier)
        keys = {"from_key": from_key, "to_key": to_key}
        over = await transaction.run("tiers/list_agents_over_limit", scope, **keys, looked_at=COUNTED, most=most)
        room = MOVED_AT_ONCE
        for row in over:
            rows = await transaction.run("tiers/list_least_active", scope, **keys, agent_id=row["agent_id"], window=most + room, most=most)
            await _demote(transaction, scope, tier, [{"id": found["id"], "tier_age": found["tier_age"]} for found in rows])
            room -= len(rows)
            if len(rows) < row["units"] - most or room <= 0:
                return True
        return False


async def _demote(transaction: WriteTransaction, scope: AuthorizedScope, tier: Tier, moves: Iterable[Row]) -> list[Row]:
    """Move units of a tier one down; those that were moved."""
    in_order = sorted(moves, key=lambda move: str(move["id"]))
    return await transaction.run("tiers/demote_to_warm" if tier is Tier.HOT else "tiers/demote_to_cold", scope, moves=in_order)


async def _mark(transaction: WriteTransaction, scope: AuthorizedScope, rows: Iterable[Row]) -> None:
    """The sessions of units that came into a tier: there may now be too many in it."""
    session_ids = sorted({str(row["session_id"]) for row in rows if row["session_id"] is not None})
    if session_ids:
        await transaction.run("tiers/mark_sessions", scope, session_ids=session_ids)


def _ranked(rows: Sequence[Row]) -> list[Candidate]:
    found: list[Candidate] = []
    places: dict[Tier, int] = {}
    for row in rows:
        tier = Tier(row["tier"])
        place = places[tier] = places.get(tier, -1) + 1
        found.append(candidate(row, (int(order_keys.TIER_PLACES[tier]) + 8 / (8 + place)) / PLACES, tier.value))
    return found
