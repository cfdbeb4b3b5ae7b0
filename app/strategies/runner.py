"""Runs the plan's strategies in turn until one answers, and keeps what was tried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic

from app.router.planner import TIME_SHARES, Plan
from app.strategies import hybrid, recency, tiers, traversal
from app.strategies.concurrency import Concurrency, NotBegun
from app.strategies.retrieval import Retrieval
from graph.context_store import ContextStore
from graph.model.answer import Attempt
from graph.model.candidates import Found
from graph.model.errors import DeadlineExceeded
from graph.model.query import StrategyName
from graph.tier_store import TierStore
from graph.unit_store import UnitStore

Strategy = Callable[[Plan, float], Awaitable[Found]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found, by which strategy, and every attempt on the way."""

    found: Found
    strategy: StrategyName
    attempts: tuple[Attempt, ...]


class StrategyRunner:
    """Knows each strategy by its name."""

    def __init__(
        self, store: ContextStore, units: UnitStore, tier_store: TierStore, retrieval: Retrieval, concurrency: Concurrency
    ) -> None:
        self._concurrency = concurrency
        self._by_name: dict[StrategyName, Strategy] = {
            StrategyName.RETRIEVAL: retrieval.search,
            StrategyName.TEXT: retrieval.words,
            StrategyName.HYBRID: lambda plan, deadline_s: hybrid.combined(self._by_name, retrieval, plan, deadline_s),
            StrategyName.TRAVERSAL: lambda plan, deadline_s: traversal.traverse(store, plan, deadline_s),
            StrategyName.RECENCY: lambda plan, deadline_s: recency.newest(store, units, plan, deadline_s),
            StrategyName.TIERS: lambda plan, deadline_s: tiers.by_tier(tier_store, plan, deadline_s),
        }

    async def run(self, plan: Plan) -> Outcome:
        """The first answer in time.

        Raises:
            DeadlineExceeded: no strategy answered. Never an empty answer instead.
            NotFound: what the query is about does not exist for this caller.
        """
        attempts: list[Attempt] = []
        for name in plan.strategies:
            allowed_s = plan.remaining_s * TIME_SHARES[name]
            began = monotonic()
            try:
                with self._concurrency.run(name, allowed_s, last=name is plan.strategies[-1]):
                    found = await self._by_name[name](plan, allowed_s)
            except NotBegun:
                attempts.append(
                    Attempt(strategy=name, outcome="not_begun", ms=_ms(began), reason="it would not have ended in time beside others")
                )
                continue
            except DeadlineExceeded:
                attempts.append(
                    Attempt(strategy=name, outcome="timed_out", ms=_ms(began), reason=f"no answer within {allowed_s * 1000:.0f} ms")
                )
                continue
            attempts.append(Attempt(strategy=name, outcome="answered", ms=_ms(began)))
            return Outcome(found, name, tuple(attempts))
        raise DeadlineExceeded


def _ms(began: float) -> float:
    return round((monotonic() - began) * 1000, 2)
