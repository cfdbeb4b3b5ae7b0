"""What context answers cost, noted in memory and written down every few seconds, as usage is (A10)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from graph.ledger_store import LedgerStore
from graph.model.errors import LastroError
from graph.model.ledger import NONE, OTHER, OTHER_MODELS, LedgerKey, Spent
from graph.model.scope import RESERVED_PREFIX, AuthorizedScope
from graph.quota_store import hour_of

log = logging.getLogger(__name__)

FLUSH_S = 5.0
FLUSH_DEADLINE_S = 5.0
PART = 500
"""Entries written in one transaction."""
MOST_OF_AGENT = 200
"""Sessions, tasks and models of one agent that are kept apart in an hour; so one that makes names up takes no room from the others."""
MOST_OF_TENANT = 2_000
"""The same of all of a tenant's agents together."""
MODELS_BEYOND = 20
"""Models of an agent that are still told apart when its tasks are not any more."""
HOURS_OF_DAY = 24


@dataclass(frozen=True, slots=True)
class LedgerItem:
    """One answer: for which task and model, and how many of its tokens were asked for, spent, and left out for want of budget."""

    task_id: str | None
    model: str
    asked: int
    spent: int
    left_out: int
    cache_hit: bool = False
    fallback: bool = False


@dataclass(slots=True)
class _Hour:
    """What one tenant's answers cost in one hour."""

    scope: AuthorizedScope
    totals: dict[LedgerKey, Spent] = field(default_factory=dict[LedgerKey, Spent])
    of_agent: Counter[str] = field(default_factory=Counter[str])
    fresh: set[LedgerKey] = field(default_factory=set[LedgerKey])
    """Whose totals have grown since they were written down."""

    def of(self, wanted: LedgerKey) -> LedgerKey:
        """The entry that an answer is counted in: its own, while there is room for it."""
        if self._has_room(wanted, MOST_OF_AGENT, MOST_OF_TENANT):
            return wanted
        by_model = LedgerKey(wanted.agent_id, NONE, OTHER, wanted.model)
        if self._has_room(by_model, MOST_OF_AGENT + MODELS_BEYOND, MOST_OF_TENANT * 2):
            return by_model
        return LedgerKey(wanted.agent_id, NONE, OTHER, OTHER_MODELS)

    def _has_room(self, entry: LedgerKey, most_of_agent: int, most: int) -> bool:
        return entry in self.totals or (self.of_agent[entry.agent_id] < most_of_agent and len(self.totals) < most)

    def note(self, wanted: LedgerKey) -> Spent:
        """What is counted for an answer, to be raised by it."""
        entry = self.of(wanted)
        if entry not in self.totals:
            self.totals[entry] = Spent()
            self.of_agent[entry.agent_id] += 1
        self.fresh.add(entry)
        return self.totals[entry]


class BudgetLedger:
    """Notes what answers cost, and deletes entries that are over their time."""

    def __init__(self, store: LedgerStore, keep_days: int) -> None:
        """``keep_days``: how long entries stay."""
        self._store = store
        self._keep_hours = keep_days * HOURS_OF_DAY
        self._replica = secrets.token_hex(4)
        self._hours: dict[tuple[str, int], _Hour] = {}
        self._hour = 0
        self._deleted_at = 0
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def state(self) -> str:
        """Whether what is noted is also written down: ``running``, ``stopped`` when the task died, or ``off``; told by /readyz."""
        if self._task is None:
            return "off"
        return "stopped" if self._task.done() else "running"

    def note(self, scope: AuthorizedScope, item: LedgerItem) -> None:
        """Note one answer that was given just now."""
        principal = scope.principal
        if scope.tenant_id.startswith(RESERVED_PREFIX):
            return
        # A clock that is set back must not begin an hour anew whose totals are written down already.
        self._hour = max(self._hour, hour_of(datetime.now(UTC)))
        hour = self._hours.get((scope.tenant_id, self._hour))
        if hour is None:
            hour = self._hours[scope.tenant_id, self._hour] = _Hour(scope)
        counts = hour.note(LedgerKey(principal.agent_id, principal.session_id or NONE, item.task_id or NONE, item.model or NONE))
        counts.answers += 1
        counts.cache_hits += item.cache_hit
        counts.fallbacks += item.fallback
        counts.tokens_asked += item.asked
        counts.tokens_spent += item.spent
        counts.tokens_left_out += item.left_out

    async def flush(self, tenant_id: str | None = None, *, deadline_s: float = FLUSH_DEADLINE_S) -> None:
        """Write down what has grown, of one tenant or of all.

        Raises:
            DatabaseBusy, DatabaseUnavailable: some of it is not written; it is kept, and written the next time.
        """
        async with self._writing:
            for (owner, number), hour in list(self._hours.items()):
                if tenant_id is not None and owner != tenant_id:
                    continue
                known = await self._write_down(hour, number, deadline_s)
                if not known or (number < self._hour and not hour.fresh):
                    # What was counted for a tenant that is gone must not come back in one that takes its name.
                    del self._hours[owner, number]

    async def _write_down(self, hour: _Hour, number: int, deadline_s: float) -> bool:
        """Whether the tenant is still there."""
        pending = sorted(hour.fresh)
        for start in range(0, len(pending), PART):
            part = pending[start : start + PART]
            hour.fresh.difference_update(part)
            try:
                totals = {entry: hour.totals[entry] for entry in part}
                if not await self._store.record(hour.scope, number, self._replica, totals, deadline_s=deadline_s):
                    return False
            except BaseException:
                # Also when the service is told to stop meanwhile: totals are written again by whoever flushes last.
                hour.fresh.update(part)
                raise
        return True

    async def delete_old(self, now: datetime | None = None) -> int:
        """Delete entries that are over their time, of every tenant; how many. Any number of replicas may do it at once."""
        deleted, before = 0, hour_of(now or datetime.now(UTC)) - self._keep_hours
        while some := await self._store.delete_before(before):
            deleted += some
        return deleted

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Write down every few seconds while the block runs, and once more at its end."""
        self._task = asyncio.create_task(self._work(), name="writing the ledger down")
        try:
            yield
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            try:
                await self.flush()
            except LastroError as error:
                log.warning("the last entries of the ledger are lost: %s", error.code)

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            try:
                await self.flush()
                hour = hour_of(datetime.now(UTC))
                if hour != self._deleted_at:
                    await self.delete_old()
                    self._deleted_at = hour
            except LastroError as error:
                log.warning("the ledger is written down later: %s", error.code)
