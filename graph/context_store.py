"""Candidates for an answer: heads of units without their text, found by a walk or by recency."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from graph import order_keys
from graph.connection import Database
from graph.model.answer import PathStep
from graph.model.candidates import Candidate, Found
from graph.model.scope import AuthorizedScope
from graph.model.units import ALL_KINDS, EdgeType, Kind
from graph.statements import Row
from graph.unit_rows import candidate

NO_DIRECTION: dict[str, float] = {"": 0.0}
"""The weight of the row that keeps an empty frontier alive."""
HOPS = 3
"""Hops of ``context/traverse_units``; a path is no longer than that."""
CONSTRAINT_SAMPLE = 256
"""Constraints of a task that are read before the newest are kept."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How far and how wide a traversal goes. Every number bounds work in the database."""

    weights: Mapping[str, Mapping[EdgeType, float]]
    """By direction (``out`` along an edge, ``in`` against it) and edge type: how much of a unit's activation passes."""
    decay: float
    """What is left of the activation after one hop, 0 to 1."""
    fan: int
    """Neighbours taken of one unit in each direction."""
    sample: int
    """Edges read of one unit against their direction, of which the newest ``fan`` are taken."""
    looked_at: int
    """Edges of one unit that are looked at to find ``sample`` whose other end the caller may see."""
    width: int
    """Units that go on to the next hop."""
    limit: int
    """Candidates returned."""


@dataclass(frozen=True, slots=True)
class Window:
    """What part of a task and of time may be seen. The defaults leave nothing out."""

    task_id: str = ""
    step: int = order_keys.MAX_STEP
    """Units of ``task_id`` after this step are left out."""
    as_of_us: int = order_keys.FOREVER_US
    """Units recorded later are left out; microseconds as in ``order_keys``."""

    def conditions(self, kinds: Collection[Kind] | None) -> dict[str, object]:
        """The parameters of the statements that search: this window, and the kinds that are asked for (None for all)."""
        told = list(ALL_KINDS if kinds is None else kinds)
        return {"task_id": self.task_id, "step": self.step, "as_of_us": self.as_of_us, "kinds": told}


class ContextStore:
    """Statements behind the strategies. Nothing here returns text or an embedding."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def traverse(self, scope: AuthorizedScope, seeds: Mapping[str, float], walk: Walk, window: Window, *, deadline_s: float) -> Found:
        """Units within three weighted hops of the seeds, most activated first. ``seeds``: unit id to activation."""
        weights = {
            direction: {**{edge_type.value.upper(): weight for edge_type, weight in by_type.items()}, **NO_DIRECTION}
            for direction, by_type in walk.weights.items()
        }
        answer = await self._database.read(
            "context/traverse_units",
            scope,
            deadline_s=deadline_s,
            seeds=[{"id": unit_id, "activation": activation} for unit_id, activation in seeds.items()],
            task_id=window.task_id,
            step=window.step,
            as_of_us=window.as_of_us,
            weights={**weights, "": NO_DIRECTION},
            decay=walk.decay,
            fan=walk.fan,
            sample=walk.sample,
            looked_at=walk.looked_at,
            width=walk.width,
            limit=walk.limit,
        )
        rows: list[Row] = answer[0]["rows"]
        via = {str(row["id"]): row["via"] for row in rows}
        found = [
            candidate(row, float(row["activation"]), "start" if row["via"] is None else "reached", _path(str(row["id"]), via))
            for row in rows
        ]
        return Found(tuple(found), hubs_sampled=any(bool(row["sampled"]) for row in rows))

    async def newest_of_session(
        self, scope: AuthorizedScope, session_id: str, window: Window, limit: int, *, deadline_s: float
    ) -> list[Candidate]:
        """The newest ``limit`` units of a session, newest first."""
        keys = order_keys.whole_range(scope.tenant_id, session_id)
        return await self._recent("session_order", scope, keys, window, limit, deadline_s)

    async def newest_of_task(self, scope: AuthorizedScope, window: Window, limit: int, *, deadline_s: float) -> list[Candidate]:
        """The newest ``limit`` units of the window's task, newest first: by step when the window ends at one, else by time."""
        if window.step < order_keys.MAX_STEP:
            keys = order_keys.up_to_step(scope.tenant_id, window.task_id, window.step)
            return await self._recent("task_step_order", scope, keys, window, limit, deadline_s)
        keys = order_keys.whole_range(scope.tenant_id, window.task_id)
        return await self._recent("task_order", scope, keys, window, limit, deadline_s)

    async def constraints_of_task(self, scope: AuthorizedScope, window: Window, limit: int, *, deadline_s: float) -> list[Candidate]:
        """What constrains the window's task, newest first."""
        rows = await self._database.read(
            "context/read_constraints_by_task",
            scope,
            deadline_s=deadline_s,
            task_id=window.task_id,
            step=window.step,
            as_of_us=window.as_of_us,
            sample=CONSTRAINT_SAMPLE,
            limit=limit,
        )
        return _ranked(rows[0]["rows"])

    async def rules_of_task(self, scope: AuthorizedScope, window: Window, limit: int, *, deadline_s: float) -> list[Candidate]:
        """The constraints of authority over the window's task, newest first."""
        rows = await self._database.read(
            "context/read_rules_by_task",
            scope,
            deadline_s=deadline_s,
            task_id=window.task_id,
            step=window.step,
            as_of_us=window.as_of_us,
            sample=CONSTRAINT_SAMPLE,
            limit=limit,
        )
        return [item._replace(reason="rule") for item in _ranked(rows[0]["rows"])]

    async def _recent(
        self, order: str, scope: AuthorizedScope, keys: tuple[str, str], window: Window, limit: int, deadline_s: float
    ) -> list[Candidate]:
        rows = await self._database.read(
            f"context/read_recent_by_{order}",
            scope,
            deadline_s=deadline_s,
            from_key=keys[0],
            to_key=keys[1],
            as_of_us=window.as_of_us,
            limit=limit,
        )
        return _ranked(rows[0]["rows"])


def _ranked(rows: Sequence[Row]) -> list[Candidate]:
    """Recency as a score: 1 for the newest, half of it eight places later."""
    return [candidate(row, 8 / (8 + rank), "recent") for rank, row in enumerate(rows)]


def _path(unit_id: str, via: Mapping[str, Sequence[object] | None]) -> tuple[PathStep, ...]:
    """The strongest way to a unit, seed first, put together from each unit's strongest predecessor."""
    steps: list[PathStep] = []
    at = unit_id
    while (step := via.get(at)) is not None and len(steps) < HOPS:
        _, from_id, direction, edge_type = step
        steps.append(PathStep(from_id=str(from_id), edge_type=EdgeType(str(edge_type).lower()), direction=str(direction), to_id=at))
        at = str(from_id)
    return tuple(reversed(steps))
