"""The newest units of the session or task: the simplest strategy, and the fallback of the others."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic

from app.router.planner import Plan
from app.strategies.traversal import RULES
from graph.context_store import ContextStore
from graph.model.candidates import Found
from graph.model.errors import NotFound
from graph.model.query import QueryType
from graph.unit_store import UnitStore

MOST = 200
"""Candidates at the most."""


async def newest(store: ContextStore, units: UnitStore, plan: Plan, deadline_s: float) -> Found:
    """The newest units of what the plan is about; around a unit, of its task or else its session.

    Raises:
        NotFound: the unit does not exist for this caller.
        DeadlineExceeded: ``deadline_s`` seconds passed.
    """
    query, window = plan.query, plan.window
    ends = monotonic() + deadline_s
    session_id = query.session_id
    if plan.query_type is QueryType.AROUND_UNIT:
        assert query.unit_id is not None
        read = await units.read_many(plan.scope, [query.unit_id], as_of_us=window.as_of_us, deadline_s=deadline_s)
        if not read:
            raise NotFound
        metadata = read[0].unit.metadata
        if metadata.task_id is not None:
            window = replace(window, task_id=metadata.task_id)
        else:
            session_id = metadata.session_id
    if session_id is not None:
        return Found(tuple(await store.newest_of_session(plan.scope, session_id, window, MOST, deadline_s=ends - monotonic())))
    if window.task_id:
        recent = await store.newest_of_task(plan.scope, window, MOST, deadline_s=ends - monotonic())
        rules = await store.rules_of_task(plan.scope, window, RULES, deadline_s=ends - monotonic())
        known = {item.id for item in recent}
        return Found((*recent, *(item for item in rules if item.id not in known)))
    return Found()
