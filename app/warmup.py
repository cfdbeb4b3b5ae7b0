"""The first runs of a statement cost its planning and its compilation (measured: 160 to 700 ms), so the hot ones run before the first request.

Planning alone is not enough: an engine on the JVM compiles what it has run, over rows. So a tenant of the service's own holds a few
units, written once, over which every hot statement runs until it is quick.
"""

from __future__ import annotations

import logging
from time import monotonic

from app.ingest import Ingest
from app.registry.registry import Registry
from app.router.pipeline import Router
from graph.model.errors import DeadlineExceeded, LastroError
from graph.model.query import ContextQuery, StrategyName
from graph.model.scope import RESERVED_PREFIX, AuthorizedScope
from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, Relation, Tool

log = logging.getLogger(__name__)

WARM_UP = f"{RESERVED_PREFIX}warm-up"
UNITS = 40
DEADLINE_MS = 20_000
QUICK_MS = 60.0
QUICK_ROUNDS = 3
MOST_S = 4.0


async def warm(registry: Registry, ingest: Ingest, router: Router) -> None:
    """Run writes and queries of each kind until they are quick, for at most four seconds. A failure here stops nothing."""
    scope = registry.local(WARM_UP, WARM_UP, session_id=WARM_UP)
    began = monotonic()
    queries = [
        ContextQuery(unit_id=_id(UNITS - 1), deadline_ms=DEADLINE_MS),
        ContextQuery(task_id=WARM_UP, step=UNITS, deadline_ms=DEADLINE_MS),
        ContextQuery(task_id=WARM_UP, deadline_ms=DEADLINE_MS),
        ContextQuery(session_id=WARM_UP, deadline_ms=DEADLINE_MS),
        ContextQuery(topic="Which warm-up unit came after Number Four?", deadline_ms=DEADLINE_MS),
        ContextQuery(topic="warm-up unit", strategy=StrategyName.TEXT, deadline_ms=DEADLINE_MS),
        # The fallback is asked for when time is short already.
        ContextQuery(unit_id=_id(UNITS - 1), strategy=StrategyName.RECENCY, deadline_ms=DEADLINE_MS),
    ]
    quick = 0
    try:
        await registry.ensure_tenant(scope)
        await registry.find_key("0" * 16)
        await ingest.write(scope, _units())
        rounds = 0
        while quick < QUICK_ROUNDS and monotonic() - began < MOST_S:
            slowest = 0.0
            rounds += 1
            for query in queries:
                # Another deadline makes another question: the same one would be answered from what is kept.
                slowest = max(slowest, await _asked(router, query.model_copy(update={"deadline_ms": DEADLINE_MS + rounds}), scope))
            quick = quick + 1 if slowest < QUICK_MS else 0
    except LastroError as error:
        log.warning("warm-up stopped early: %s", error.code)
    log.info("warm after %.1f s", monotonic() - began)


async def _asked(router: Router, query: ContextQuery, scope: AuthorizedScope) -> float:
    """What a query took, ms. One that is planned for longer than its deadline does not keep the others from being planned."""
    try:
        answer = await router.answer_within(query, scope)
    except DeadlineExceeded:
        return float(DEADLINE_MS)
    return answer.receipt.timings_ms["total"]


def _units() -> list[ContextUnit]:
    """A run in small: every kind of edge, calls with results, a constraint, a correction."""
    units: list[ContextUnit] = []
    for number in range(UNITS):
        relations: list[Relation] = []
        kind, tool = Kind.OBSERVATION, None
        if number == 0:
            kind = Kind.CONSTRAINT
        elif number % 4 in {1, 2}:
            kind = Kind.DECISION if number % 4 == 1 else Kind.TOOL_RESULT
            tool = Tool(name="look", call_id=f"call-{number // 4}")
        if number > 0:
            relations.append(Relation(target_id=_id(number - 1), edge_type=EdgeType.CAUSATION))
        if number >= 4 and number % 4 == 3:  # noqa: PLR2004 (every fourth)
            relations += [
                Relation(target_id=_id(number - 3), edge_type=EdgeType.DEPENDENCY),
                Relation(target_id=_id(number - 2), edge_type=EdgeType.PROVENANCE),
                Relation(target_id=_id(number - 4), edge_type=EdgeType.SUPERSESSION),
            ]
        units.append(
            ContextUnit(
                id=_id(number),
                kind=kind,
                content=f"Warm-up unit {number}.",
                metadata=Metadata(task_id=WARM_UP, task_step=number, tool=tool),
                relations=relations,
            )
        )
    return units


def _id(number: int) -> str:
    return f"warm-up-{number:02}"
