"""A query's way, top to bottom. Nothing happens to a query that is not on this screen."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from time import monotonic

from adapters.registry import AdapterRegistry
from app.governance.crossings import Crossings, foreign_units
from app.governance.ledger import BudgetLedger, LedgerItem
from app.governance.quotas import Quotas
from app.governance.uses import Uses
from app.registry.permissions import Action
from app.registry.registry import Credential, Registry
from app.router.cache import AnswerCache, Made, given
from app.router.loading import load
from app.router.planner import Plan, Planner
from app.router.rendering import Presented, costs, present
from app.router.selection import rank, select
from app.strategies.concurrency import Concurrency
from app.strategies.runner import Outcome, StrategyRunner
from graph.model.answer import AnswerRelation, Consumption, ContextAnswer, LeftOutReason, Receipt, SelectedUnit
from graph.model.query import ContextQuery
from graph.model.scope import AuthorizedScope
from graph.unit_store import UnitStore

MOST_LEFT_OUT = 50
"""Entries of the receipt that name a unit; the counts cover all of them."""


class Router:
    """Answers context queries."""

    def __init__(
        self,
        registry: Registry,
        planner: Planner,
        strategies: StrategyRunner,
        units: UnitStore,
        adapters: AdapterRegistry,
        quotas: Quotas,
        crossings: Crossings,
        uses: Uses,
        cache: AnswerCache,
        ledger: BudgetLedger,
        concurrency: Concurrency,
    ) -> None:
        self._registry = registry
        self._planner = planner
        self._strategies = strategies
        self._units = units
        self._adapters = adapters
        self._quotas = quotas
        self._crossings = crossings
        self._uses = uses
        self._cache = cache
        self._ledger = ledger
        self._concurrency = concurrency

    async def answer(self, read_query: Callable[[], Awaitable[ContextQuery]], credential: Credential) -> ContextAnswer:
        """Identity, permission, then the answer (R1). The query itself is read only once it is known who asks.

        Raises:
            Unauthenticated, Forbidden, NotFound, QuotaExceeded: before anything is read.
            as ``answer_within``.
        """
        clock = Clock()
        principal = await self._registry.identify(credential)
        clock.lap("identify")
        scope = self._registry.authorize(principal, Action.READ_CONTEXT, credential)
        clock.lap("authorize")
        await self._quotas.admit(scope, Action.READ_CONTEXT)
        clock.lap("quota")
        query = await read_query()
        clock.lap("read")
        return await self.answer_within(query, scope, clock)

    async def answer_within(self, query: ContextQuery, scope: AuthorizedScope, clock: Clock | None = None) -> ContextAnswer:
        """The answer for a scope that the registry has minted.

        Raises:
            InvalidInput and its kinds: the query cannot be answered as it is.
            NotFound: the unit it is about does not exist for this caller.
            DeadlineExceeded: no strategy answered in time.
        """
        clock = clock or Clock()
        plan = self._planner.plan(query, scope, clock.started)
        clock.lap("plan")
        async with self._cache.once(plan) as turn:
            clock.lap("cache")
            made = turn.made = turn.made or await self._make_in_place(plan, clock)
        # What each answer is counted and written down for, whether it was made for this request or for another.
        tokens, receipt = made.answer.consumption.tokens.value, made.answer.receipt
        self._uses.note(scope, (unit.id for unit in made.answer.units))
        await self._crossings.note_counted(scope, made.foreign)
        await self._quotas.answered(scope, tokens)
        cost = LedgerItem(query.task_id, plan.model, query.budget_tokens, tokens, made.tokens_left_out, turn.is_hit, receipt.fallback)
        self._ledger.note(scope, cost)
        clock.lap("note")
        return given(made, turn.state, {**clock.laps, "total": clock.total_ms})

    async def _make_in_place(self, plan: Plan, clock: Clock) -> Made:
        async with self._concurrency.place(plan.scope.tenant_id, plan.remaining_s):
            clock.lap("wait")
            return await self._make(plan, clock)

    async def _make(self, plan: Plan, clock: Clock) -> Made:
        """What the question has for an answer, from candidates to payload."""
        outcome = await self._strategies.run(plan)
        clock.lap("candidates")
        loaded = await load(self._units, plan, rank(outcome.found.candidates, plan.query))
        clock.lap("load")
        selection = select(plan, loaded, costs(plan, loaded.units))
        clock.lap("select")
        presented = present(plan, selection, self._adapters.tokenizers)
        clock.lap("render")
        answer = _answer(plan, outcome, presented, clock, complete=loaded.complete, shallow=selection.shallow)
        return Made(
            answer,
            foreign=foreign_units(plan.scope, (item.unit for item in loaded.units.values())),
            tokens_left_out=sum(item.tokens or 0 for item in presented.left_out if item.reason is LeftOutReason.BUDGET),
        )


class Clock:
    """Stage times of one request, ms."""

    def __init__(self) -> None:
        self.started = monotonic()
        self._last = self.started
        self.laps: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = monotonic()
        self.laps[stage] = round((now - self._last) * 1000, 2)
        self._last = now

    @property
    def total_ms(self) -> float:
        return round((monotonic() - self.started) * 1000, 2)


def _answer(plan: Plan, outcome: Outcome, presented: Presented, clock: Clock, *, complete: bool, shallow: bool) -> ContextAnswer:
    ids = {item.stored.unit.id for item in presented.chosen}
    units = [
        # The unit was checked when it was written; it is not checked again on each read.
        SelectedUnit.model_construct(
            **{name: getattr(item.stored.unit, name) for name in type(item.stored.unit).model_fields},
            relevance_score=round(item.score, 4),
            path=list(item.path),
            reason=item.reason,
        )
        for item in presented.chosen
    ]
    relations = [
        AnswerRelation(source_id=unit.id, target_id=relation.target_id, edge_type=relation.edge_type)
        for unit in units
        for relation in unit.relations
        if relation.target_id in ids
    ]
    neutral = sum(item.stored.content_tokens for item in presented.chosen)
    notes = list(outcome.found.notes)
    if not complete:
        notes.append("Some chains of dependencies were longer than the bound; what hangs on them was left out.")
    if presented.rendered is not None:
        notes += presented.rendered.notes
    if shallow:
        notes.append("Some units come with what they depend on directly; what that depends on was too much to read.")
    if plan.adapter is None:
        notes.append("No model was named: there is no payload, and tokens are counted in o200k_base.")
    receipt = Receipt(
        trace_id=uuid.uuid4().hex,
        query_type=plan.query_type,
        strategy=outcome.strategy,
        why=plan.why,
        attempts=list(outcome.attempts),
        fallback=outcome.strategy is not plan.strategies[0],
        partial=outcome.found.partial,
        candidates=len(outcome.found.candidates),
        search=outcome.found.search,
        hubs_sampled=outcome.found.hubs_sampled,
        left_out=list(presented.left_out[:MOST_LEFT_OUT]),
        left_out_counts=dict(Counter(item.reason.value for item in presented.left_out)),
        budget_tokens=plan.query.budget_tokens,
        budget_used=presented.tokens.value,
        deadline_ms=plan.query.deadline_ms,
        timings_ms={**clock.laps, "total": clock.total_ms},
        notes=notes,
    )
    return ContextAnswer(
        units=units,
        relations=relations,
        rendered=presented.rendered,
        consumption=Consumption(
            tokens=presented.tokens,
            units=len(units),
            compression=round(neutral / presented.tokens.value, 4) if presented.tokens.value else 0.0,
        ),
        receipt=receipt,
    )
