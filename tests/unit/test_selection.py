"""What loading and selection promise, over random graphs: whole pairs, needs met, nothing replaced or retracted, the budget kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.governance.admission import current, visible_superseders
from app.router import loading
from app.router.loading import Loaded, decided_by, depended_on, load
from app.router.planner import Plan
from app.router.selection import Selection, rank, select
from graph.context_store import Window
from graph.model.answer import LeftOutReason
from graph.model.candidates import Candidate
from graph.model.errors import DeadlineExceeded
from graph.model.query import ContextQuery, QueryType, StrategyName
from graph.model.scope import AuthorizedScope, Principal, Role
from graph.model.units import ContextUnit, EdgeType, EpistemicStatus, Kind, Metadata, Relation, Scope, Tool
from graph.order_keys import FOREVER_US
from graph.unit_rows import StoredUnit
from graph.unit_store import UnitStore

BEGIN = datetime(2026, 3, 4, 8, 6, 7, tzinfo=UTC)
SCOPE = AuthorizedScope(Principal("t", "a", Role.AGENT, "k", Scope()), None, None)
CALL, RESULT, NOTE = "call", "result", "note"


@dataclass
class World:
    """What is stored, who replaced and answered whom, and what the caller may see of it."""

    units: dict[str, StoredUnit] = field(default_factory=dict[str, StoredUnit])
    hidden: set[str] = field(default_factory=set[str])
    reads: int = 0
    levels: int = 0

    async def read_many(
        self,
        scope: AuthorizedScope,
        unit_ids: Sequence[str],
        *,
        as_of_us: int = FOREVER_US,
        deadline_s: float = 5.0,
    ) -> list[StoredUnit]:
        assert scope is SCOPE
        assert as_of_us == FOREVER_US
        assert deadline_s > 0
        self.reads += 1
        return [self.units[unit_id] for unit_id in reversed(unit_ids) if unit_id in self.visible]

    async def read_with_needs(
        self,
        scope: AuthorizedScope,
        unit_ids: Sequence[str],
        *,
        most: int,
        as_of_us: int = FOREVER_US,
        deadline_s: float = 5.0,
    ) -> list[StoredUnit]:
        """Brings along what is needed, and of that what decides about it; ``levels`` of these, since a store may bring less."""
        found = {item.unit.id: item for item in await self.read_many(scope, unit_ids, as_of_us=as_of_us, deadline_s=deadline_s)}
        frontier = list(found)
        for level in range(self.levels):
            named = [
                name for unit_id in frontier for name in (*decided_by(found[unit_id]), *(depended_on(found[unit_id]) if level == 0 else ()))
            ]
            frontier = [name for name in dict.fromkeys(named) if name in self.visible and name not in found][: most // 2]
            found |= {name: self.units[name] for name in frontier}
        return list(found.values())

    @property
    def visible(self) -> dict[str, StoredUnit]:
        return {unit_id: unit for unit_id, unit in self.units.items() if unit_id not in self.hidden}

    def add(self, unit_id: str, what: str = NOTE, *relations: tuple[EdgeType, str], tokens: int = 10, retracted: bool = False) -> None:
        """A unit, with what its edges mean for older ones noted there, as the store does."""
        status = EpistemicStatus.RETRACTED if retracted else EpistemicStatus.TENTATIVE
        at = BEGIN + timedelta(seconds=len(self.units))
        unit = ContextUnit(
            id=unit_id,
            kind={CALL: Kind.DECISION, RESULT: Kind.TOOL_RESULT, NOTE: Kind.OBSERVATION}[what],
            content=f"Text of {unit_id}.",
            metadata=Metadata(
                agent_id="a",
                timestamp=at,
                recorded_at=at,
                epistemic_status=status,
                tool=Tool(name="look") if what != NOTE else None,
            ),
            relations=[Relation(edge_type=edge_type, target_id=target) for edge_type, target in relations],
        )
        self.units[unit_id] = StoredUnit(unit, tokens, (), ())
        for edge_type, target in relations:
            old = self.units[target]
            if edge_type is EdgeType.SUPERSESSION:
                self.units[target] = StoredUnit(old.unit, old.content_tokens, (*old.superseder_ids, unit_id)[-8:], old.result_ids)
            elif edge_type is EdgeType.CAUSATION and what == RESULT and old.unit.kind is Kind.DECISION:
                self.units[target] = StoredUnit(old.unit, old.content_tokens, old.superseder_ids, (*old.result_ids, unit_id)[-8:])

    def candidate(self, unit_id: str, score: float) -> Candidate:
        stored = self.units[unit_id]
        unit = stored.unit
        assert unit.metadata.timestamp is not None
        return Candidate(
            id=unit_id,
            kind=unit.kind,
            trust=unit.trust,
            epistemic_status=unit.metadata.epistemic_status,
            agent_id="a",
            actor=None,
            timestamp=unit.metadata.timestamp,
            task_id=None,
            task_step=None,
            tool_name=None,
            content_tokens=stored.content_tokens,
            score=score,
            superseded_by=stored.superseder_ids,
            results=stored.result_ids,
        )


def plan_of(budget: int, *, history: bool = False, ends_in_s: float = 60) -> Plan:
    query = ContextQuery(unit_id="u0", budget_tokens=budget, include_history=history)
    return Plan(
        query=query,
        scope=SCOPE,
        query_type=QueryType.AROUND_UNIT,
        strategies=(StrategyName.TRAVERSAL,),
        why="a test",
        adapter=None,
        model="",
        window=Window(),
        ends=monotonic() + ends_in_s,
    )


def chosen_of(world: World, plan: Plan, candidates: Sequence[Candidate]) -> tuple[Selection, Loaded]:
    loaded = asyncio.run(load(cast("UnitStore", world), plan, rank(candidates, plan.query)))
    return select(plan, loaded, lambda head: head.content_tokens), loaded


def ids_of(selection: Selection) -> list[str]:
    return [item.stored.unit.id for item in selection.chosen]


EDGE_TYPES = st.sampled_from([EdgeType.DEPENDENCY, EdgeType.SUPERSESSION, EdgeType.PROVENANCE, EdgeType.CAUSATION])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, list[Candidate]]:
    """A random run: notes, calls and results, edges to what came before, some out of sight; some of it are candidates."""
    world = World()
    for number in range(draw(st.integers(1, 16))):
        what = draw(st.sampled_from([NOTE, NOTE, CALL, RESULT]))
        older = sorted(world.units)
        edges = draw(st.lists(st.tuples(EDGE_TYPES, st.sampled_from(older)), max_size=3)) if older else []
        calls = [unit_id for unit_id in older if world.units[unit_id].unit.kind is Kind.DECISION]
        if what == RESULT and calls:
            edges.append((EdgeType.CAUSATION, draw(st.sampled_from(calls))))
        tokens, retracted = draw(st.integers(1, 30)), draw(st.sampled_from([False, False, False, True]))
        world.add(f"u{number}", what, *dict.fromkeys(edges), tokens=tokens, retracted=retracted)
    world.levels = draw(st.integers(0, 2))
    world.hidden = draw(st.sets(st.sampled_from(sorted(world.units)), max_size=2))
    seen = draw(st.lists(st.sampled_from(sorted(world.units)), unique=True))
    scores = st.sampled_from([0.1, 0.5, 0.5, 0.9]) | st.floats(0.01, 1)
    return world, [world.candidate(unit_id, draw(scores)) for unit_id in seen]


Bounds = tuple[int, int, int]
BOUNDS: st.SearchStrategy[Bounds] = st.just((loading.FEWEST, loading.MOST_ROUNDS, loading.MOST_UNITS)) | st.tuples(
    st.integers(0, 12), st.integers(1, 4), st.integers(1, 12)
)
"""The bounds of loading as they are, and so tight that chains are cut."""


@settings(deadline=None, max_examples=200, report_multiple_bugs=False)
@given(worlds(), st.integers(1, 200), st.booleans(), BOUNDS, st.randoms(use_true_random=False))
def test_what_an_answer_promises(
    made: tuple[World, list[Candidate]], budget: int, history: bool, bounds: Bounds, random: st.DataObject
) -> None:
    world, candidates = made
    plan = plan_of(budget, history=history)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(("FEWEST", "MOST_ROUNDS", "MOST_UNITS"), bounds, strict=True):
            patch.setattr(loading, name, value)
        selection, loaded = chosen_of(world, plan, candidates)
        shuffled = list(candidates)
        cast("list[Candidate]", random.shuffle(shuffled))  # type: ignore[attr-defined]
        again, _ = chosen_of(world, plan, shuffled)
    ids = ids_of(selection)
    assert ids_of(again) == ids, "the same state gives the same answer"
    assert again.left_out == selection.left_out
    assert len(set(ids)) == len(ids)
    assert len(loaded.units) <= bounds[2]
    the_budget_is_kept(selection, budget)
    what_may_not_enter_is_absent(world, ids, history=history)
    pairs_are_whole(world, ids)
    needs_are_met(world, selection, history=history)
    better_comes_first(selection)
    what_is_left_out_is_named_once(selection, {item.id for item in candidates} | world.units.keys())


def the_budget_is_kept(selection: Selection, budget: int) -> None:
    assert selection.tokens == sum(item.tokens for item in selection.chosen) <= budget


def what_may_not_enter_is_absent(world: World, ids: list[str], *, history: bool) -> None:
    visible = world.visible
    for unit_id in ids:
        assert unit_id in visible
        assert visible[unit_id].unit.metadata.epistemic_status is not EpistemicStatus.RETRACTED
        assert history or not visible_superseders(visible[unit_id], visible), f"{unit_id} was replaced"


def pairs_are_whole(world: World, ids: list[str]) -> None:
    visible = world.visible
    for unit_id in visible:
        pair = {unit_id, *(result for result in visible[unit_id].result_ids if result in visible)}
        if len(pair) > 1 and unit_id in ids:
            assert pair <= set(ids), f"the pair of {unit_id} was split"
        for result in pair - {unit_id}:
            calls = [relation.target_id for relation in visible[result].unit.relations if relation.edge_type is EdgeType.CAUSATION]
            answered = [call for call in calls if call in visible and result in visible[call].result_ids]
            if result in ids and unit_id == (answered or [None])[0]:
                assert unit_id in ids, f"{result} came without its call"


def needs_are_met(world: World, selection: Selection, *, history: bool) -> None:
    """To the end; where that was not read, directly for what was chosen for itself."""
    visible = world.visible
    ids = ids_of(selection)
    for unit_id in [item.stored.unit.id for item in selection.chosen if not (selection.shallow and item.reason == "required")]:
        for relation in visible[unit_id].unit.relations:
            if relation.edge_type is EdgeType.DEPENDENCY:
                assert relation.target_id in visible
                needed = relation.target_id if history else current(relation.target_id, visible)
                assert needed in ids, f"{unit_id} needs {needed}"


def better_comes_first(selection: Selection) -> None:
    scores = [item.score for item in selection.chosen]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    asked = [(-item.score, item.stored.unit.id) for item in selection.chosen if item.reason in {"reached", "superseder"}]
    assert asked == sorted(asked), "ties go by id"
    picks = [item.pick for item in selection.chosen]
    assert picks == sorted(picks), "what was picked together stands together"


def what_is_left_out_is_named_once(selection: Selection, known: set[str]) -> None:
    left = [item.id for item in selection.left_out]
    assert not set(left) & set(ids_of(selection))
    assert len(set(left)) == len(left), "nobody is counted twice"
    assert set(left) <= known


def test_many_candidates_with_many_results_are_not_an_empty_answer() -> None:
    """More must be read than the bound allows: the best are answered with, whole."""
    world = World()
    for number in range(120):
        world.add(f"c{number:03}", CALL)
        for result in range(8):
            world.add(f"c{number:03}-r{result}", RESULT, (EdgeType.CAUSATION, f"c{number:03}"))
    assert len(world.units) > loading.MOST_UNITS
    selection, loaded = chosen_of(world, plan_of(100_000), [world.candidate(f"c{number:03}", 1 - number / 1000) for number in range(120)])
    assert ids_of(selection)[:9] == ["c000", *(f"c000-r{result}" for result in range(8))]
    assert len(loaded.units) <= loading.MOST_UNITS
    pairs_are_whole(world, ids_of(selection))
    assert len(ids_of(selection)) + sum(item.reason is LeftOutReason.BUDGET for item in selection.left_out) >= 120


def test_candidates_that_need_more_than_may_be_read_are_not_an_empty_answer() -> None:
    world = World()
    for number in range(200):
        for need in range(4):
            world.add(f"n{number:03}-{need}")
        world.add(f"u{number:03}", NOTE, *((EdgeType.DEPENDENCY, f"n{number:03}-{need}") for need in range(4)))
    selection, loaded = chosen_of(world, plan_of(100_000), [world.candidate(f"u{number:03}", 1 - number / 1000) for number in range(200)])
    assert {f"n000-{need}" for need in range(4)} | {"u000"} == set(ids_of(selection)[:5])
    assert not loaded.complete
    needs_are_met(world, selection, history=False)


def test_a_chain_of_corrections_longer_than_is_followed_gives_none_of_it() -> None:
    world = World()
    world.add("v0")
    for number in range(1, 40):
        world.add(f"v{number}", NOTE, (EdgeType.SUPERSESSION, f"v{number - 1}"))
    world.add("apart")
    selection, loaded = chosen_of(world, plan_of(1000), [world.candidate("v0", 0.9), world.candidate("apart", 0.5)])
    assert not loaded.complete
    assert ids_of(selection) == ["apart"], "what was replaced is not shown for current because reading stopped"
    assert [item.reason for item in selection.left_out] == [LeftOutReason.INCOMPLETE]


def test_a_chain_within_the_bound_gives_its_end() -> None:
    world = World()
    world.add("v0")
    for number in range(1, loading.MOST_ROUNDS):
        world.add(f"v{number}", NOTE, (EdgeType.SUPERSESSION, f"v{number - 1}"))
    selection, loaded = chosen_of(world, plan_of(1000), [world.candidate("v0", 0.9)])
    assert loaded.complete
    assert ids_of(selection) == [f"v{loading.MOST_ROUNDS - 1}"]
    assert len(selection.chosen[0].path) == 1


def test_loading_stops_at_the_deadline() -> None:
    world = World()
    world.add("u0")
    with pytest.raises(DeadlineExceeded):
        chosen_of(world, plan_of(1000, ends_in_s=-1), [world.candidate("u0", 1)])
    assert world.reads == 0


def test_texts_are_read_for_about_the_budget_only() -> None:
    world = World()
    for number in range(200):
        world.add(f"u{number:03}", tokens=100)
    candidates = [world.candidate(unit_id, 0.5) for unit_id in world.units]
    selection, loaded = chosen_of(world, plan_of(1000), candidates)
    assert len(ids_of(selection)) == 10
    assert len(loaded.units) <= 16
    assert len(selection.left_out) == 190
