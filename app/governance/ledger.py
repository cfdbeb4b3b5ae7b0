"""What context answers cost, noted in memory and written down every few seconds, as usage is (A10)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.background import Background
from app.governance.hourly import FLUSH_S, Hour, HourlyTotals
from graph.ledger_store import LedgerStore
from graph.model.ledger import NONE, OTHER, OTHER_MODELS, LedgerKey, Spent
from graph.model.scope import RESERVED_PREFIX, AuthorizedScope
from graph.quota_store import hour_of

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
class _Hour(Hour[LedgerKey, Spent]):
    """What one tenant's answers cost in one hour."""

    of_agent: Counter[str] = field(default_factory=Counter[str])
    """Entries of each agent."""

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
        self._totals = HourlyTotals(store.record, _Hour)
        self._deleted_at = 0
        self.flush = self._totals.flush
        self.forget = self._totals.forget
        self.job = Background("writing the ledger down", self._work, FLUSH_S, at_end=self.flush)

    def note(self, scope: AuthorizedScope, item: LedgerItem) -> None:
        """Note one answer that was given just now."""
        principal = scope.principal
        if scope.tenant_id.startswith(RESERVED_PREFIX):
            return
        key = LedgerKey(principal.agent_id, principal.session_id or NONE, item.task_id or NONE, item.model or NONE)
        counts = self._totals.now(scope).note(key)
        counts.answers += 1
        counts.cache_hits += item.cache_hit
        counts.fallbacks += item.fallback
        counts.tokens_asked += item.asked
        counts.tokens_spent += item.spent
        counts.tokens_left_out += item.left_out

    async def delete_old(self, now: datetime | None = None) -> int:
        """Delete entries that are over their time, of every tenant; how many. Any number of replicas may do it at once."""
        deleted, before = 0, hour_of(now or datetime.now(UTC)) - self._keep_hours
        while some := await self._store.delete_before(before):
            deleted += some
        return deleted

    async def _work(self) -> None:
        await self.flush()
        hour = hour_of(datetime.now(UTC))
        if hour != self._deleted_at:
            await self.delete_old()
            self._deleted_at = hour
