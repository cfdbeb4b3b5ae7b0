"""From a task or unit along weighted edges (S1)."""

from __future__ import annotations

from time import monotonic

from app.router.planner import Plan
from graph.context_store import ContextStore, Walk
from graph.model.candidates import Candidate, Found
from graph.model.errors import NotFound
from graph.model.query import QueryType
from graph.model.units import EdgeType

# Judgements, to be measured on real conversations: what a unit needs or was caused by explains it; who replaced it matters more than it does.
WALK = Walk(
    weights={
        "out": {EdgeType.DEPENDENCY: 1.0, EdgeType.CAUSATION: 0.9, EdgeType.PROVENANCE: 0.7, EdgeType.SUPERSESSION: 0.4},
        "in": {EdgeType.SUPERSESSION: 1.0, EdgeType.CAUSATION: 0.7, EdgeType.DEPENDENCY: 0.6, EdgeType.PROVENANCE: 0.4},
    },
    decay=0.7,
    fan=32,
    sample=128,
    looked_at=512,
    width=64,
    limit=200,
)
RECENT_OF_TASK = 128
"""Newest units of a task that are candidates though no edge leads to them."""
SEEDS = 8
"""How many of these the walk starts from."""
CONSTRAINTS = 8
"""Constraints of the task that it also starts from, however old."""
RULES = 32
"""Constraints of authority that are candidates whatever else there is."""
CONSTRAINT_ACTIVATION = 0.8
RECENT_SHARE = 0.25
"""What being recent in the task is worth beside being reached."""


async def traverse(store: ContextStore, plan: Plan, deadline_s: float) -> Found:
    """Candidates around the plan's unit or task, best first.

    Raises:
        NotFound: the unit does not exist for this caller.
        DeadlineExceeded: ``deadline_s`` seconds passed.
    """
    if plan.query_type is QueryType.AROUND_UNIT:
        assert plan.query.unit_id is not None
        found = await store.traverse(plan.scope, {plan.query.unit_id: 1.0}, WALK, plan.window, deadline_s=deadline_s)
        if not found.candidates:
            raise NotFound
        return found
    ends = monotonic() + deadline_s
    recent = await store.newest_of_task(plan.scope, plan.window, RECENT_OF_TASK, deadline_s=deadline_s)
    if not recent:
        return Found()
    rules = await store.rules_of_task(plan.scope, plan.window, RULES, deadline_s=ends - monotonic())
    constraints = await store.constraints_of_task(plan.scope, plan.window, CONSTRAINTS, deadline_s=ends - monotonic())
    seeds = {item.id: CONSTRAINT_ACTIVATION for item in [*constraints, *rules]} | {item.id: item.score for item in recent[:SEEDS]}
    walked = await store.traverse(plan.scope, seeds, WALK, plan.window, deadline_s=ends - monotonic())
    return Found(_merged(walked.candidates, [*recent, *rules]), walked.hubs_sampled)


def _merged(reached: tuple[Candidate, ...], recent: list[Candidate]) -> tuple[Candidate, ...]:
    """Reached and recent units as one list: scores are put on one scale, and recency adds to what was reached."""
    highest = max((item.score for item in reached), default=1.0) or 1.0
    merged = {item.id: item._replace(score=item.score / highest) for item in reached}
    for item in recent:
        bonus = RECENT_SHARE * item.score
        known = merged.get(item.id)
        merged[item.id] = known._replace(score=known.score + bonus) if known is not None else item._replace(score=bonus)
    return tuple(merged.values())
