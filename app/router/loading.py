"""From candidates without text to whole units: those that may be chosen, and everything they cannot stand without."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.router.planner import Plan
from graph.model.candidates import Candidate
from graph.model.errors import DeadlineExceeded
from graph.model.units import EdgeType, Kind
from graph.unit_rows import StoredUnit
from graph.unit_store import UnitStore

GENEROSITY = 1.5
"""Texts are read for this many times the budget: some candidates fall away, and smaller ones take their place."""
FEWEST = 12
"""Candidates whose texts are read at the least."""
MOST_ROUNDS = 8
"""How often what is needed may need something else: the length of a chain of dependencies or corrections that is followed."""
MOST_UNITS = 600
"""Whole units read for one answer at the most."""


@dataclass(slots=True)
class Loaded:
    """Whole units by id, and which candidates were not looked at because the budget was surely spent before them."""

    units: dict[str, StoredUnit] = field(default_factory=dict[str, StoredUnit])
    considered: list[Candidate] = field(default_factory=list[Candidate])
    beyond_budget: list[Candidate] = field(default_factory=list[Candidate])
    complete: bool = True
    """False when a chain was longer than the bounds; what hangs on it is then left out."""


async def load(store: UnitStore, plan: Plan, ranked: Sequence[Candidate]) -> Loaded:
    """Read the texts that selection can need, in few round trips.

    Raises:
        DeadlineExceeded: the plan's deadline passed.
    """
    loaded = Loaded()
    room = plan.query.budget_tokens * GENEROSITY
    for item in ranked:
        if room > 0 or len(loaded.considered) < FEWEST:
            loaded.considered.append(item)
            room -= item.content_tokens
        else:
            loaded.beyond_budget.append(item)
    asked: set[str] = set()
    # Who replaced and who answered a candidate is known from its head, so the first round already has most of what is needed.
    wanted: set[str] = set()
    for item in loaded.considered:
        wanted.update((item.id, *item.superseded_by, *item.results))
    for _ in range(MOST_ROUNDS):
        wanted -= asked
        if not wanted:
            return loaded
        if len(asked) + len(wanted) > MOST_UNITS:
            break
        if plan.remaining_s <= 0:
            raise DeadlineExceeded
        asked |= wanted
        read = await store.read_many(plan.scope, sorted(wanted), as_of_us=plan.window.as_of_us, deadline_s=plan.remaining_s)
        loaded.units.update((item.unit.id, item) for item in read)
        wanted = set(_needed_by(read))
    loaded.complete = not (wanted - asked)
    return loaded


def _needed_by(read: Iterable[StoredUnit]) -> Iterable[str]:
    for item in read:
        yield from item.superseder_ids
        yield from item.result_ids
        for relation in item.unit.relations:
            if relation.edge_type is EdgeType.DEPENDENCY or (
                relation.edge_type is EdgeType.CAUSATION and item.unit.kind is Kind.TOOL_RESULT
            ):
                yield relation.target_id
