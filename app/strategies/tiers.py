"""A session by tier: what is hot, then what is warm, then what is cold (S2)."""

from __future__ import annotations

from app.router.planner import Plan
from graph.model.candidates import Found
from graph.tier_store import TierStore

MOST = 200
"""Candidates at the most."""


async def by_tier(store: TierStore, plan: Plan, deadline_s: float) -> Found:
    """The session's hot units, newest first, then its warm and its cold ones.

    Raises:
        DeadlineExceeded: ``deadline_s`` seconds passed.
    """
    session_id = plan.query.session_id
    assert session_id is not None, "the planner lets this strategy be named for sessions alone"
    return Found(tuple(await store.of_session(plan.scope, session_id, plan.window, MOST, deadline_s=deadline_s)))
