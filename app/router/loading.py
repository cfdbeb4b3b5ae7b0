"""From candidates without text to whole units: those that may be chosen, and everything they cannot stand without."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.router.planner import Plan
from graph.context_store import Window
from graph.model.candidates import Candidate
from graph.model.errors import DeadlineExceeded
from graph.model.units import EdgeType, Kind
from graph.unit_rows import StoredUnit
from graph.unit_store import UnitStore

GENEROSITY = 1.3
"""Texts are read for this many times the budget: some candidates fall away, and smaller ones take their place."""
FEWEST = 12
"""Candidates whose texts are read at the least."""
HEADER_TOKENS = 20
"""What a unit's header costs beside its content at the least, in any model's form."""
MOST_ROUNDS = 6
"""How often more is asked for: the length of a chain of dependencies or corrections that is followed."""
THIN = 8
"""Dependencies of dependencies are followed while there are no more than this; beyond, a unit comes with what it depends on directly."""
MOST_UNITS = 600
"""Whole units read for one answer at the most."""


@dataclass(slots=True)
class Loaded:
    """Whole units by id, and which candidates were not looked at because the budget was surely spent before them."""

    units: dict[str, StoredUnit] = field(default_factory=dict[str, StoredUnit])
    considered: list[Candidate] = field(default_factory=list[Candidate])
    beyond_budget: list[Candidate] = field(default_factory=list[Candidate])
    asked: set[str] = field(default_factory=set[str])
    """Ids that were looked for, found or not."""
    unread: set[str] = field(default_factory=set[str])
    """Ids that decide about units and were not read, since that is more than the bounds allow; what hangs on them is left out."""

    @property
    def complete(self) -> bool:
        """Whether everything that was needed was read."""
        return not self.unread


async def load(store: UnitStore, plan: Plan, ranked: Sequence[Candidate]) -> Loaded:
    """Read the texts that selection can need, in few round trips.

    Raises:
        DeadlineExceeded: the plan's deadline passed.
    """
    loaded = Loaded()
    room = plan.query.budget_tokens * GENEROSITY
    considered: list[Candidate] = []
    for item in ranked:
        if room > 0 or len(considered) < FEWEST:
            considered.append(item)
            room -= item.content_tokens + HEADER_TOKENS
        else:
            loaded.beyond_budget.append(item)
    # In the order of the candidates, so that where the bound cuts, the best are whole.
    # Who replaced and who answered a candidate is known from its head, so the first round already has most of what is needed.
    wanted: dict[str, None] = {}
    for item in considered:
        wanted |= dict.fromkeys((item.id, *item.superseded_by, *item.results))
    direct = set(wanted)
    asked = loaded.asked
    for _ in range(MOST_ROUNDS):
        now = [unit_id for unit_id in wanted if unit_id not in asked][: MOST_UNITS - len(asked)]
        if not now:
            break
        if plan.remaining_s <= 0:
            raise DeadlineExceeded
        asked.update(now)
        # What these need comes along: a round trip for each edge took longer than the walk (docs/benchmarks.md).
        read = await store.read_with_needs(
            plan.scope, now, most=MOST_UNITS - len(asked), as_of_us=plan.window.as_of_us, deadline_s=plan.remaining_s
        )
        # As what is recorded after as_of is not read, what belongs to a later step of the task is not known yet.
        fresh = [item for item in read if not _is_later(item, plan.window)]
        loaded.units.update((item.unit.id, item) for item in fresh)
        asked.update(item.unit.id for item in read)
        for item in fresh:
            decides = dict.fromkeys(decided_by(item))
            wanted |= decides
            if item.unit.id in direct:
                # What stands in for a candidate, or moves with it, is as much asked for as the candidate itself.
                direct.update(decides)
        must = {target for unit_id in direct & loaded.units.keys() for target in depended_on(loaded.units[unit_id])}
        may = {target for item in loaded.units.values() for target in depended_on(item)} - asked - must
        wanted |= dict.fromkeys(sorted(must))
        if len(may) <= THIN:
            wanted |= dict.fromkeys(sorted(may))
    loaded.unread = wanted.keys() - asked
    # What this caller may not see was not read; its id must not be told either, nor be felt in what a unit's head costs.
    loaded.considered = [_as_seen(item, loaded) for item in considered if item.id not in loaded.unread]
    loaded.beyond_budget[:0] = [item for item in considered if item.id in loaded.unread]
    loaded.beyond_budget = [_as_seen(item, loaded) for item in loaded.beyond_budget]
    return loaded


def _as_seen(item: Candidate, loaded: Loaded) -> Candidate:
    """The candidate with only those that replaced or answered it that were read for this caller."""
    if not item.superseded_by and not item.results:
        return item
    return item._replace(
        superseded_by=tuple(other for other in item.superseded_by if other in loaded.units),
        results=tuple(other for other in item.results if other in loaded.units),
    )


def _is_later(item: StoredUnit, window: Window) -> bool:
    metadata = item.unit.metadata
    return metadata.task_id == window.task_id and (metadata.task_step or 0) > window.step


def decided_by(stored: StoredUnit) -> Iterable[str]:
    """Ids of what decides whether a unit may stand: who replaced it, its results or its call."""
    yield from stored.superseder_ids
    yield from stored.result_ids
    if stored.unit.kind is Kind.TOOL_RESULT:
        yield from (relation.target_id for relation in stored.unit.relations if relation.edge_type is EdgeType.CAUSATION)


def depended_on(stored: StoredUnit) -> Iterable[str]:
    """Ids of what a unit depends on directly."""
    return (relation.target_id for relation in stored.unit.relations if relation.edge_type is EdgeType.DEPENDENCY)
