"""How long answers take by each strategy over a large tenant with vectors, beside the raw driver running the same statements; and 32 clients.

What the service reads for a query is recorded by a run of the same query in this process; the raw driver runs those statements with the same
parameters, once in turn and once side by side where the service ran them so. The vector of a question is among the parameters: making it
is the service's alone and is counted apart, as its receipt says. An answer counts until it is parsed.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.bootstrap import Lastro
from benchmarks import at_once
from benchmarks.corpus import CYCLE, RUN_UNITS, Topic, session_id, task_id, topics, unit_id
from benchmarks.corpus_loading import EMBEDDER, Loaded, Middles, has_model, load_corpus, make_index, middles
from benchmarks.engines import BenchEngine, lastro_on, started
from benchmarks.measuring import Figure, OnProgress, Samples, at_most, load_average, median, plain, rotated
from benchmarks.quality import Wrong
from benchmarks.raw import Raw, driver
from benchmarks.replay import Replay, Wave, asked_in_process
from benchmarks.service import Door, on_address, serving
from graph.engines.base import Address
from graph.model.scope import AuthorizedScope, Role
from graph.vector_index import VectorIndex

NAME = "search"
DEFAULT_UNITS = 100_000
QUERIES = 100
"""Of each strategy."""
WARM_UP = 15
BUDGET = 2_000
MODEL = "gpt-5.2"
DEADLINE_MS = 60_000
"""Far above what is measured, so that no query falls back to a simpler strategy."""
MOST_TIMES = 1.5
PLUS_MS = 5.0
MOST_GROWTH = 1.5
"""p95 at the larger size beside that at 100,000 units, on Neo4j."""
TENANT = "search"
AGENT = "bench"
STAGES = ("identify", "quota", "candidates", "load", "select", "render", "note")

Query = dict[str, object]
Kind = Callable[["Asking"], Query]


@dataclass(frozen=True, slots=True)
class Asking:
    """Makes up queries about a tenant of ``units`` units."""

    units: int
    known: Sequence[Topic]
    chance: random.Random

    def topic(self) -> str:
        return self.chance.choice(self.known).question(self.chance)

    def run(self) -> int:
        return self.chance.randrange(max(self.units // RUN_UNITS, 1))


def _hybrid(asking: Asking) -> Query:
    step = asking.chance.randrange(50, RUN_UNITS // len(CYCLE))
    return {"task_id": task_id(asking.run()), "step": step, "topic": asking.topic()}


KINDS: dict[str, Kind] = {
    "traversal": lambda asking: {"unit_id": unit_id(asking.chance.randrange(asking.units // 10, asking.units))},
    "tiers": lambda asking: {"session_id": session_id(asking.run())},
    "recency": lambda asking: {"session_id": session_id(asking.run()), "strategy": "recency"},
    "text": lambda asking: {"topic": asking.topic(), "strategy": "text"},
    "retrieval": lambda asking: {"topic": asking.topic()},
    "hybrid": _hybrid,
}
"""A query of each strategy; the service chooses it by what is given, or by its name."""


def queries(asking: Asking, strategy: str, number: int) -> list[Query]:
    """Complete queries, as a client sends them."""
    common: Query = {"budget_tokens": BUDGET, "model": MODEL, "deadline_ms": DEADLINE_MS}
    return [{**KINDS[strategy](asking), **common} for _ in range(number)]


@dataclass(slots=True)
class Measured:
    """What was taken at one size."""

    units: int
    loaded: Loaded
    index_s: float
    samples: Samples = field(default_factory=Samples)
    statements: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Statements of each query, by strategy."""
    receipts: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    at_once: list[at_once.Got] = field(default_factory=list[at_once.Got])


async def measure(engine: BenchEngine, folder: Path, units: int, on_progress: OnProgress) -> list[Figure]:
    """At ``units`` units; when these are more than 100,000, at 100,000 first and then at both.

    Raises:
        Wrong: an answer was a fallback, or not by the strategy that it should be by.
    """
    sizes = [DEFAULT_UNITS, units] if units > DEFAULT_UNITS else [units]
    known = topics()
    around = middles(known)
    found: list[Measured] = []
    async with started(engine, folder) as address, lastro_on(address, folder, embedder=EMBEDDER) as lastro:
        scope = lastro.registry.local(TENANT, AGENT, role=Role.AGENT)
        await lastro.registry.ensure_tenant(scope)
        await has_model(lastro)
        await lastro.embedding.load()
        for number, size in enumerate(sizes):
            if number:
                # Filling an index that is there, unit by unit, takes far longer than making it anew.
                await VectorIndex(lastro.database).drop()
            loaded = _load(address, scope, known, around, sizes[number - 1] if number else 0, size, on_progress)
            measured = Measured(size, loaded, await make_index(lastro, on_progress))
            surroundings = on_address(address) | {"LASTRO_EMBEDDER": EMBEDDER}
            with serving(folder, surroundings) as served:
                key = (await lastro.registry.create_key(scope, agent_id=AGENT, role=Role.AGENT)).text
                await _take(lastro, scope, address, Door(served.port, key), known, measured, on_progress)
                measured.at_once = _at_once(served.port, key, known, size, on_progress)
            found.append(measured)
    figures = [figure for measured in found for figure in _figures(str(engine), measured)]
    if len(found) > 1:
        figures += _growth(str(engine), *found, aimed_at=engine is not BenchEngine.EMBEDDED)
    return [*figures, plain(NAME, str(engine), "load average", load_average(), "")]


def _load(
    address: Address, scope: AuthorizedScope, known: Sequence[Topic], around: Middles, first: int, units: int, on_progress: OnProgress
) -> Loaded:
    with driver(address) as connected:
        raw = Raw(connected, address)
        loaded = load_corpus(raw, scope, known, around, units, first=first, on_progress=on_progress)
        raw.close()
    return loaded


async def _take(
    lastro: Lastro,
    scope: AuthorizedScope,
    address: Address,
    door: Door,
    known: Sequence[Topic],
    measured: Measured,
    on_progress: OnProgress,
) -> None:
    """Every query by the service and by the raw driver, in turn; each kind of query is warmed up by others."""
    asking = Asking(measured.units, known, random.Random(815))  # noqa: S311 (made-up data)
    waves: dict[str, list[list[Wave]]] = {}
    asked = {strategy: queries(asking, strategy, QUERIES) for strategy in KINDS}
    with driver(address) as connected, Replay(connected, address) as replay:
        for place, strategy in enumerate(KINDS):
            for query in queries(asking, strategy, WARM_UP):
                door.context(query)
                replay.side_by_side((await asked_in_process(lastro, scope, query))[1])
            waves[strategy] = [(await asked_in_process(lastro, scope, query))[1] for query in asked[strategy]]
            measured.statements[strategy] = [sum(len(chain) for wave in each for chain in wave) for each in waves[strategy]]
            on_progress("warming up, strategies", place + 1, len(KINDS))
        for number in range(QUERIES):
            for strategy in rotated(list(KINDS), number):
                _one(door, replay, strategy, asked[strategy][number], waves[strategy][number], measured, number)
            on_progress("asking by service and by raw driver", number + 1, QUERIES)
    door.close()


def _one(door: Door, replay: Replay, strategy: str, query: Query, waves: list[Wave], measured: Measured, number: int) -> None:
    def by_service() -> None:
        began = time.perf_counter()
        answer = door.context(query)
        took = time.perf_counter() - began
        receipt = answer["receipt"]
        if receipt["fallback"] or receipt["strategy"] != strategy:
            raise Wrong(f"{receipt['strategy']} answered where {strategy} was asked: {receipt['attempts']}")
        search = receipt["search"]
        if strategy in {"retrieval", "hybrid"} and search["vectors"] == "off":
            raise Wrong(f"vectors were not searched: {receipt['notes']}")
        embedding_s = 0.0 if search is None else search["embedding_ms"] / 1000
        measured.samples.add(f"{strategy} service", took)
        measured.samples.add(f"{strategy} embedding", embedding_s)
        measured.samples.add(f"{strategy} apart", took - embedding_s)
        for stage in STAGES:
            measured.samples.add(f"{strategy} {stage}", receipt["timings_ms"].get(stage, 0.0) / 1000)
        measured.receipts.setdefault(strategy, []).append(receipt)

    def in_turn() -> None:
        began = time.perf_counter()
        replay.in_turn(waves)
        measured.samples.add(f"{strategy} in turn", time.perf_counter() - began)

    def side_by_side() -> None:
        began = time.perf_counter()
        replay.side_by_side(waves)
        measured.samples.add(f"{strategy} side by side", time.perf_counter() - began)

    for way in rotated([by_service, in_turn, side_by_side], number):
        way()


def _at_once(port: int, key: str, known: Sequence[Topic], units: int, on_progress: OnProgress) -> list[at_once.Got]:
    asking = Asking(units, known, random.Random(4711))  # noqa: S311 (made-up data)
    strategies = list(KINDS)
    mine = [
        [queries(asking, strategies[(client + place) % len(strategies)], 1)[0] for place in range(at_once.QUERIES_EACH)]
        for client in range(at_once.CLIENTS)
    ]
    return at_once.ask_at_once(port, key, mine, on_progress)


def _figures(engine: str, measured: Measured) -> list[Figure]:
    samples = measured.samples
    size = f"{measured.units:,}".replace(",", " ")
    figures = [
        plain(NAME, engine, f"{size} units: loading by the raw driver", measured.loaded.writing_s, "s"),
        plain(NAME, engine, f"{size} units: their vectors (made up)", measured.loaded.vectors_s, "s"),
        plain(NAME, engine, f"{size} units: the vector index", measured.index_s, "s"),
    ]
    for strategy in KINDS:
        named = f"{size}, {strategy}"
        for share in (0.5, 0.95):
            told = f"{named}, p{share * 100:.0f}"
            in_turn, side_by_side = samples.ms(f"{strategy} in turn", share), samples.ms(f"{strategy} side by side", share)
            apart = plain(NAME, engine, f"{told}: service without embedding the question", samples.ms(f"{strategy} apart", share), "ms")
            figures += [
                plain(NAME, engine, f"{told}: service", samples.ms(f"{strategy} service", share), "ms"),
                plain(NAME, engine, f"{told}: of it embedding the question", samples.ms(f"{strategy} embedding", share), "ms"),
                plain(NAME, engine, f"{told}: raw driver, in turn", in_turn, "ms"),
                plain(NAME, engine, f"{told}: raw driver, side by side", side_by_side, "ms"),
                at_most(apart, round(MOST_TIMES * min(in_turn, side_by_side) + PLUS_MS, 1)),
            ]
        figures += [plain(NAME, engine, f"{named}: service, {stage}, p50", samples.ms(f"{strategy} {stage}"), "ms") for stage in STAGES]
        figures.append(plain(NAME, engine, f"{named}: statements, median", median(measured.statements[strategy]), ""))
    figures += _searched(engine, size, measured)
    return [*figures, *at_once.figures(NAME, f"{engine}", measured.at_once)]


def _searched(engine: str, size: str, measured: Measured) -> list[Figure]:
    """By what means vectors were searched, and whether everything was looked at."""
    searches = [receipt["search"] for receipt in measured.receipts["retrieval"]]
    methods = Counter(search["vectors"] for search in searches)
    return [
        *(
            plain(NAME, engine, f"{size}, retrieval: vectors by {method}", count / len(searches), "of 1")
            for method, count in methods.items()
        ),
        *(
            plain(
                NAME,
                engine,
                f"{size}, retrieval: {field} complete",
                sum(search[f"{field}_complete"] for search in searches) / len(searches),
                "of 1",
            )
            for field in ("vectors", "text")
        ),
    ]


def _growth(engine: str, small: Measured, large: Measured, *, aimed_at: bool) -> list[Figure]:
    told: list[Figure] = []
    for strategy in KINDS:
        times = large.samples.ms(f"{strategy} apart", 0.95) / small.samples.ms(f"{strategy} apart", 0.95)
        figure = plain(NAME, engine, f"{strategy}, p95 at {large.units:,} beside {small.units:,} units", times, "x")
        told.append(at_most(figure, MOST_GROWTH) if aimed_at else figure)
    return told
