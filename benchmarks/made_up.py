"""Made-up agent runs: the same for every benchmark and every time, by a fixed seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson

from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, Relation, Tool

WORDS: Sequence[str] = (  # noqa: SIM905 (a text reads better than a list of its words)
    "the service answered late because its pool of connections was empty and every request waited for one while the deploy of revision "
    "forty two had halved the limit without anybody noticing it in review so checkout failed for customers in two regions until the "
    "agent read the dashboard compared both graphs asked for the change log and found which flag had been set on friday evening then it "
    "wrote a note proposed to raise the limit again and asked the person on call for a yes before touching production since the policy "
    "says that one change at a time is made and that each is written down with the revision to take it back latency fell within minutes "
    "memory stayed flat errors went under one percent the queue drained orders were replayed from the outbox and nobody lost data"
).split()
MEAN_WORDS = 60
WHEN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
NEAR = 50
"""Edges lead at most this many units back within a run."""
FAR_SHARE = 0.1
"""Of the edges that may lead into an earlier run, how many do."""
CYCLE = (Kind.OBSERVATION, Kind.DECISION, Kind.TOOL_RESULT, Kind.DECISION, Kind.TOOL_RESULT, Kind.PROGRESS_NOTE)
EVERY_CORRECTION = 20
OTHER_TYPES = (EdgeType.PROVENANCE, EdgeType.DEPENDENCY, EdgeType.CAUSATION)
OTHER_WEIGHTS = (55, 15, 30)


@dataclass(frozen=True, slots=True)
class Run:
    """Units of one session and task, each after what it points to."""

    task_id: str
    units: list[ContextUnit]


def run(number: int, length: int, *, first: int, chance: random.Random, far: bool = True) -> Run:
    """A run of ``length`` units with ids from ``first`` on: turns, calls with results, notes, now and then a correction.

    Each unit has three edges, of all four types, to near units before it; with ``far``, a tenth of them to units of earlier runs.
    """
    task_id = f"task-{number:04d}"
    units: list[ContextUnit] = []
    for place in range(length):
        at = first + place
        kind = _kind(place)
        call_id = f"call-{at if kind is Kind.DECISION else at - 1}"
        tool = Tool(name="query_metrics", call_id=call_id) if kind in {Kind.DECISION, Kind.TOOL_RESULT} else None
        units.append(
            ContextUnit(
                id=unit_id(at),
                kind=kind,
                content=text(chance),
                metadata=Metadata(
                    timestamp=WHEN + timedelta(seconds=at),
                    session_id=f"session-{number:04d}",
                    task_id=task_id,
                    task_step=place // 3,
                    tool=tool,
                ),
                relations=_relations(kind, at, first, chance, far=far),
            )
        )
    return Run(task_id, units)


def runs(units: int, length: int) -> Iterator[Run]:
    """A graph of ``units`` units in runs of ``length``."""
    chance = random.Random(20261130)  # noqa: S311 (made-up data, the same each time)
    for number, first in enumerate(range(0, units, length)):
        yield run(number, min(length, units - first), first=first, chance=chance)


def one_run(units: int) -> list[ContextUnit]:
    """One long run of one session and task."""
    return run(0, units, first=0, chance=random.Random(4711), far=False).units  # noqa: S311 (as above)


def unit_id(number: int) -> str:
    return f"unit-{number:06d}"


def text(chance: random.Random) -> str:
    """About 60 words, mostly lower-case prose with a number here and there."""
    words = chance.choices(WORDS, k=chance.randint(MEAN_WORDS - 15, MEAN_WORDS + 15))
    words[len(words) // 2] = str(chance.randint(10, 9_999))
    return " ".join(words).capitalize() + "."


def as_body(batch: Sequence[ContextUnit]) -> bytes:
    """A batch on the wire."""
    return orjson.dumps({"units": [unit.model_dump(mode="json", exclude_defaults=True) for unit in batch]})


def _kind(place: int) -> Kind:
    if place == 0:
        return Kind.CONSTRAINT
    kind = CYCLE[(place - 1) % len(CYCLE)]
    return Kind.CORRECTION if kind is Kind.PROGRESS_NOTE and place // len(CYCLE) % (EVERY_CORRECTION // len(CYCLE)) == 0 else kind


def _relations(kind: Kind, at: int, first: int, chance: random.Random, *, far: bool) -> list[Relation]:
    found: dict[tuple[EdgeType, int], None] = {}
    if at > first:
        found[EdgeType.CAUSATION, at - 1] = None
    wanted = 3
    for _ in range(wanted * 4):
        if len(found) == wanted:
            break
        corrects = kind is Kind.CORRECTION and len(found) == 1
        edge_type = EdgeType.SUPERSESSION if corrects else chance.choices(OTHER_TYPES, OTHER_WEIGHTS)[0]
        if kind is Kind.TOOL_RESULT and edge_type is EdgeType.CAUSATION:
            edge_type = EdgeType.PROVENANCE  # a result answers one call
        if far and first > 0 and not corrects and chance.random() < FAR_SHARE:
            found[edge_type, chance.randrange(first)] = None
        elif at > first:
            found[edge_type, chance.randint(max(first, at - NEAR), at - 1)] = None
    return [Relation(edge_type=edge_type, target_id=unit_id(target)) for edge_type, target in found]
