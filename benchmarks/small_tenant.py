"""Small beside large: a tenant of 100 units beside one of 100,000, and an agent that may see 100 units of its tenant's 100,000.

The same 100 units are three times: alone in a database, in a small tenant beside the large one, and inside the large one as the only ones
that the agent may see. Answers must be the same, ids in their order, and take no longer. Both databases run at once and are asked in turn.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from app.bootstrap import Lastro
from benchmarks.corpus import SEED, Topic, runs, session_id, task_id, topics, unit_id
from benchmarks.corpus_loading import EMBEDDER, has_model, load_corpus, make_index, middles
from benchmarks.engines import BenchEngine, lastro_on, started
from benchmarks.measuring import Figure, OnProgress, Samples, at_least, at_most, load_average, plain, rotated
from benchmarks.quality import Asked, Wrong
from benchmarks.raw import Raw, driver
from benchmarks.service import Door, on_address, serving
from graph.engines.base import Address
from graph.model.scope import Role

NAME = "small-tenant"
DEFAULT_UNITS = 100_000
SMALL = 100
SESSION = 25
PREFIX = "own"
AGENT = "reader"
QUERIES = 30
"""Of each kind."""
WARM_UP = 20
BUDGET = 2_000
DEADLINE_MS = 60_000
MOST_TIMES = 1.2
ALONE, BESIDE, WITHIN = "alone", "a small tenant beside", "an agent who sees 100"

Query = dict[str, object]


@dataclass(slots=True)
class Asking:
    """What is asked about the hundred units."""

    known: Sequence[Topic]
    chance: random.Random

    def queries(self, number: int) -> dict[str, list[Query]]:
        """Complete queries by kind."""
        common: Query = {"budget_tokens": BUDGET, "render": False, "deadline_ms": DEADLINE_MS}
        chance = self.chance
        return {
            "retrieval": [{"topic": self._topic(), **common} for _ in range(number)],
            "hybrid": [
                {"topic": self._topic(), "session_id": session_id(chance.randrange(SMALL // SESSION), PREFIX), **common}
                for _ in range(number)
            ],
            "traversal": [{"unit_id": unit_id(chance.randrange(SMALL), PREFIX), **common} for _ in range(number)],
            "step": [
                {"task_id": task_id(chance.randrange(SMALL // SESSION), PREFIX), "step": chance.randrange(5), **common}
                for _ in range(number)
            ],
            "tiers": [{"session_id": session_id(chance.randrange(SMALL // SESSION), PREFIX), **common} for _ in range(number)],
        }

    def _topic(self) -> str:
        return self.chance.choice(self.known).question(self.chance)


@dataclass(slots=True)
class Compared:
    """Answers that are those of the tenant alone, by who asked and what."""

    same: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    foreign: int = 0
    """Units in answers that are none of the hundred."""


async def measure(engine: BenchEngine, folder: Path, units: int, on_progress: OnProgress) -> list[Figure]:
    """Every query by the three, in turn.

    Raises:
        Wrong: an answer was a fallback.
    """
    known = topics()
    mine = [unit for run in runs(SMALL, known, prefix=PREFIX, length=SESSION, seed=SEED + 1) for unit in run.units]
    samples, compared = Samples(), Compared()
    async with AsyncExitStack() as stack:
        doors: dict[str, Door] = {}
        for place, tenants in (("without", {ALONE: "small"}), ("with", {BESIDE: "small", WITHIN: "large"})):
            below = folder / place
            below.mkdir()
            address = await stack.enter_async_context(started(engine, below))
            lastro = await stack.enter_async_context(lastro_on(address, below, embedder=EMBEDDER))
            await has_model(lastro)
            if WITHIN in tenants:
                await _load(lastro, address, known, units, on_progress)
            await make_index(lastro, on_progress)
            surroundings = on_address(address) | {"LASTRO_EMBEDDER": EMBEDDER}
            served = stack.enter_context(serving(below, surroundings))
            service = Asked(lastro, served.port, EMBEDDER)
            for name, tenant in tenants.items():
                doors[name] = await service.door(tenant, role=Role.AGENT, agent=AGENT)
                service.write(doors[name], mine, f"writing the hundred, {name}", on_progress)
            await service.until_embedded(f"embedding the hundred, {place}", on_progress)
        asking = Asking([known[number] for number in _topics_of(known)], random.Random(815))  # noqa: S311 (made-up data)
        for kind in asking.queries(WARM_UP).values():
            for query in kind:
                for door in (*doors.values(), doors[ALONE]):
                    door.context(query)
        _ask(doors, asking.queries(QUERIES), {unit.id for unit in mine}, samples, compared, on_progress)
        for door in doors.values():
            door.close()
    return _figures(str(engine), units, samples, compared)


async def _load(lastro: Lastro, address: Address, known: Sequence[Topic], units: int, on_progress: OnProgress) -> None:
    scope = lastro.registry.local("large", "bench", role=Role.AGENT)
    await lastro.registry.ensure_tenant(scope)
    with driver(address) as connected:
        raw = Raw(connected, address)
        load_corpus(raw, scope, known, middles(known), units, on_progress=on_progress)
        raw.close()


def _topics_of(known: Sequence[Topic]) -> list[int]:
    """Topics that the hundred units are about, so that questions have answers."""
    return sorted({about for run in runs(SMALL, known, prefix=PREFIX, length=SESSION, seed=SEED + 1) for about in run.about})


def _ask(
    doors: dict[str, Door],
    asked: dict[str, list[Query]],
    own: set[str],
    samples: Samples,
    compared: Compared,
    on_progress: OnProgress,
) -> None:
    for number in range(QUERIES):
        for kind, wanted in asked.items():
            answers: dict[str, list[str]] = {}
            for name, door in rotated(list(doors.items()), number):
                began = time.perf_counter()
                answer = door.context(wanted[number])
                samples.add(f"{kind} {name}", time.perf_counter() - began)
                if answer["receipt"]["fallback"]:
                    raise Wrong(f"a fallback answered: {answer['receipt']['attempts']}")
                answers[name] = [unit["id"] for unit in answer["units"]]
                compared.foreign += len(set(answers[name]) - own)
            # The other database answers two of the three: asked once more, uncounted, this one is as warm.
            doors[ALONE].context(wanted[number])
            for name in (BESIDE, WITHIN):
                compared.same.setdefault(f"{name}, {kind}", []).append(float(answers[name] == answers[ALONE]))
        on_progress("asking three in turn", number + 1, QUERIES)


def _figures(engine: str, units: int, samples: Samples, compared: Compared) -> list[Figure]:
    figures = [
        plain(NAME, engine, "units of the large tenant", units, ""),
        at_most(plain(NAME, engine, "units in answers that are none of the hundred", compared.foreign, ""), 0),
    ]
    figures += [
        at_least(plain(NAME, engine, f"{name}: answers as alone", 100 * sum(same) / len(same), "%"), 100)
        for name, same in compared.same.items()
    ]
    for kind in dict.fromkeys(what.rsplit(", ", 1)[1] for what in compared.same):
        for share in (0.5, 0.95):
            figures.append(plain(NAME, engine, f"{ALONE}, {kind}, p{share * 100:.0f}", samples.ms(f"{kind} {ALONE}", share), "ms"))
        for name in (BESIDE, WITHIN):
            for share in (0.5, 0.95):
                figures.append(plain(NAME, engine, f"{name}, {kind}, p{share * 100:.0f}", samples.ms(f"{kind} {name}", share), "ms"))
            times = samples.ms(f"{kind} {name}") / samples.ms(f"{kind} {ALONE}")
            figures += [
                at_most(plain(NAME, engine, f"{name}, {kind}: beside alone, p50", times, "x"), MOST_TIMES),
                plain(
                    NAME,
                    engine,
                    f"{name}, {kind}: the same, median of rounds",
                    samples.paired_ratio(f"{kind} {name}", f"{kind} {ALONE}"),
                    "x",
                ),
            ]
    return [*figures, plain(NAME, engine, "load average", load_average(), "")]
