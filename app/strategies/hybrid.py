"""Several strategies in one answer (S6): what the query gives a start to is run side by side, and what more than one finds counts for more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic

from app.router.planner import Plan, has_start
from app.strategies.retrieval import NOT_OVER_NAMES, Retrieval, unless_late
from graph.model.candidates import Candidate, Found
from graph.model.errors import DeadlineExceeded
from graph.model.query import QueryType, StrategyName

Strategy = Callable[[Plan, float], Awaitable[Found]]

SHARES: dict[QueryType, Mapping[StrategyName, float]] = {
    QueryType.STEP: {StrategyName.TRAVERSAL: 1.0, StrategyName.RETRIEVAL: 0.6},
    QueryType.TOPIC_AROUND: {StrategyName.RETRIEVAL: 1.0, StrategyName.TRAVERSAL: 0.5, StrategyName.TIERS: 0.4},
    QueryType.TOPIC: {StrategyName.RETRIEVAL: 1.0},
    QueryType.AROUND_UNIT: {StrategyName.TRAVERSAL: 1.0, StrategyName.RETRIEVAL: 0.6},
    QueryType.AROUND_TASK: {StrategyName.TRAVERSAL: 1.0, StrategyName.RETRIEVAL: 0.6},
    QueryType.SESSION: {StrategyName.TIERS: 1.0, StrategyName.RETRIEVAL: 0.6},
}
"""What each strategy's best candidate is worth, by type of query. Judgements."""
MOST = 600


NAMED = 8
"""Best units of a traversal from which shared names are crossed."""
NAME_SHARE = 0.35
"""What a unit is worth that only shares a name, beside the best."""


async def combined(by_name: Mapping[StrategyName, Strategy], retrieval: Retrieval, plan: Plan, deadline_s: float) -> Found:
    """The candidates of all strategies that have something to start from, each once, best first.

    Raises:
        NotFound: the unit that the query is about does not exist for this caller.
        DeadlineExceeded: none of them answered within ``deadline_s`` seconds. When only some did not, the notes say which.
    """
    ends = monotonic() + deadline_s
    shares = {name: share for name, share in SHARES[plan.query_type].items() if has_start(plan.query, name)}
    results = await asyncio.gather(*(unless_late(by_name[name](plan, deadline_s)) for name in shares))
    answered = {name: found for name, found in zip(shares, results, strict=True) if found is not None}
    if not answered:
        raise DeadlineExceeded
    late = [name for name in shares if name not in answered]
    merged: dict[str, Candidate] = {}
    for name, found in answered.items():
        highest = max((item.score for item in found.candidates), default=0.0) or 1.0
        for item in found.candidates:
            worth = shares[name] * item.score / highest
            known = merged.get(item.id)
            if known is None:
                merged[item.id] = item._replace(score=worth)
            else:
                # What applies whatever is asked stays known as that.
                reason = item.reason if item.reason == "rule" else known.reason
                merged[item.id] = known._replace(score=known.score + worth, reason=reason, path=known.path or item.path)
    walked = answered.get(StrategyName.TRAVERSAL)
    sharing = await unless_late(retrieval.sharing_names(plan, walked.candidates[:NAMED] if walked is not None else (), ends - monotonic()))
    for item in sharing or ():
        merged.setdefault(item.id, item._replace(score=NAME_SHARE * item.score))
    best = sorted(merged.values(), key=lambda item: (-item.score, item.id))[:MOST]
    return Found(
        tuple(best),
        hubs_sampled=any(found.hubs_sampled for found in answered.values()),
        search=next((found.search for found in answered.values() if found.search is not None), None),
        partial=bool(late) or sharing is None or any(found.partial for found in answered.values()),
        notes=(
            *(note for found in answered.values() for note in found.notes),
            *(f"The strategy {name} did not answer in time and is not part of this." for name in late),
            *([NOT_OVER_NAMES] if sharing is None else []),
        ),
    )
