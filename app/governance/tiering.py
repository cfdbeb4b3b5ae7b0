"""The background job that moves units down their tiers: what has aged, and what is too much of a session (S2)."""

from __future__ import annotations

import logging
import secrets
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic

from app.background import Background
from graph.lease_store import LeaseStore
from graph.model.errors import LastroError
from graph.model.scope import AuthorizedScope
from graph.model.units import Tier
from graph.order_keys import microseconds
from graph.tier_store import Aged, TierLimits, TierStore

log = logging.getLogger(__name__)

LEASE = "tiers"
LEASE_S = 60.0
"""A replica that dies at work is followed by another after this."""
POLL_S = 15.0
"""How often a replica looks whether there is something to do."""
SERVICE = "lastro:tiers"
"""For whom units are moved."""
AGED_AT_ONCE = 500
MOST_AGED = 20_000
"""Units that one run moves down for their age; the next goes on."""
MOST_SESSIONS = 1_000
"""Sessions that one run looks at; the next goes on with those that wait longest."""
MOST_STEPS = 20
"""Transactions that one session gets in one run."""


@dataclass(frozen=True, slots=True)
class TierRules:
    """When units go down; each is a setting."""

    hot_age_s: float
    """Seconds since it was written or last used after which a hot unit becomes warm."""
    warm_age_s: float
    """The same for a warm unit, which becomes cold; counted from the same moment."""
    limits: TierLimits


class TieringJob:
    """Runs beside the service: one replica at a time, under a lease in the graph, once in ``interval_s`` seconds."""

    def __init__(
        self,
        store: TierStore,
        leases: LeaseStore,
        scope_of: Callable[[str, str], AuthorizedScope],
        rules: TierRules,
        interval_s: float,
        lease: str = LEASE,
    ) -> None:
        self._store = store
        self._leases = leases
        self._scope_of = scope_of
        self._rules = rules
        self._interval = timedelta(seconds=interval_s)
        self._lease = lease
        self._holder = secrets.token_hex(8)
        self._renewed = 0.0
        self.job = Background("tiers", self.once, min(POLL_S, interval_s))

    async def once(self) -> bool:
        """Move down what is due, if this replica gets the lease and the interval is over; whether it did.

        Work is bounded: what is left is done by the next call, without waiting for the next interval.
        """
        done_at = await self._leases.take(self._lease, self._holder, LEASE_S)
        if done_at is None or datetime.now(UTC) - done_at < self._interval:
            return False
        self._renewed = monotonic()
        through = [
            await self._age(Tier.HOT, self._rules.hot_age_s),
            await self._age(Tier.WARM, self._rules.warm_age_s),
            await self._settle(),
        ]
        if all(through):
            await self._leases.note_done(self._lease, self._holder)
        return True

    async def _age(self, tier: Tier, age_s: float) -> bool:
        """Move a tier's aged units down, of whatever tenant; whether that was all."""
        before_us = microseconds(datetime.now(UTC) - timedelta(seconds=age_s))
        after = ""
        for _ in range(MOST_AGED // AGED_AT_ONCE):
            found = await self._store.aged(tier, before_us, AGED_AT_ONCE, after)
            by_tenant: dict[str, list[Aged]] = defaultdict(list)
            for item in found:
                by_tenant[item.tenant_id].append(item)
            for tenant_id, aged in by_tenant.items():
                try:
                    await self._store.demote_aged(self._scope_of(tenant_id, SERVICE), tier, aged)
                except LastroError as error:
                    # One tenant's trouble must not keep the others' from moving; these are found again by the next run.
                    log.warning("units of a tenant stay in their tier: %s", error.code)
            if len(found) < AGED_AT_ONCE:
                return True
            after = found[-1].tier_age
            if not await self._still_ours():
                return False
        return False

    async def _settle(self) -> bool:
        """Move down what sessions hold too much of; whether that was all."""
        grown = await self._store.grown_sessions(MOST_SESSIONS)
        all_settled = len(grown) < MOST_SESSIONS
        for tenant_id, session_id in grown:
            try:
                all_settled = await self._settle_session(self._scope_of(tenant_id, SERVICE), session_id) and all_settled
            except LastroError as error:
                log.warning("the tiers of a session stay as they are: %s", error.code)
            if not await self._still_ours():
                return False
        return all_settled

    async def _settle_session(self, scope: AuthorizedScope, session_id: str) -> bool:
        for _ in range(MOST_STEPS):
            if not await self._store.settle(scope, session_id, self._rules.limits):
                return True
            if not await self._still_ours():
                return False
        return False

    async def _still_ours(self) -> bool:
        """Whether the lease is still this replica's; it is renewed long before it ends, not at each step."""
        if monotonic() - self._renewed < LEASE_S / 4:
            return True
        self._renewed = monotonic()
        return await self._leases.take(self._lease, self._holder, LEASE_S) is not None
