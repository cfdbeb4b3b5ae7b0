"""From writing to finding: by words at the next request, by meaning a moment later; and what a unit takes on the disk."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.corpus import runs, topics
from benchmarks.corpus_loading import EMBEDDER, has_model, load_corpus, make_index, middles
from benchmarks.engines import BenchEngine, lastro_on, started
from benchmarks.made_up import as_body
from benchmarks.measuring import Figure, OnProgress, Samples, at_least, at_most, load_average, plain
from benchmarks.quality import Asked, Wrong, asked
from benchmarks.raw import Raw, driver
from benchmarks.service import Door
from graph.model.scope import Role
from graph.model.units import ContextUnit, Kind

NAME = "recall-lag"
DEFAULT_UNITS = 20_000
"""For the size on disk."""
BY_WORDS = 100
BY_MEANING = 200
"""Units of the steady stream: as many as a search by meaning gives at the most, so that the door itself tells at the end that all are there."""
RATE = 10.0
"""Units a second."""
MOST_S = 2.0
LOOK_S = 0.02
WAIT_S = 120.0
LETTERS = "bcdfghjklmnpqrstvwz"


async def measure(engine: BenchEngine, folder: Path, units: int, on_progress: OnProgress) -> list[Figure]:
    """The lag by the service, then the size on disk of ``units`` units in a database of their own.

    Raises:
        Wrong: units have no embedding after two minutes, or the door does not find what the graph says is there.
    """
    samples = Samples()
    async with asked(engine, folder / "lag", EMBEDDER) as service:
        door = await service.door("recall", role=Role.AGENT, agent="bench")
        found = _by_words(service, door, samples, on_progress)
        door.close()
        door = await service.door("meaning", role=Role.AGENT, agent="bench")
        await _by_meaning(service, door, samples, on_progress)
        door.close()
    figures = [
        plain(NAME, str(engine), "by words: units written, each asked for at once", BY_WORDS, ""),
        at_least(plain(NAME, str(engine), "by words: found by the next request", 100 * found / BY_WORDS, "%"), 100),
        plain(NAME, str(engine), "by words: a write, p50", samples.ms("write"), "ms"),
        plain(NAME, str(engine), "by words: from the write's answer to the unit, p50", samples.ms("words"), "ms"),
        plain(NAME, str(engine), "by words: the same, p95", samples.ms("words", 0.95), "ms"),
        plain(NAME, str(engine), "by meaning: units a second", RATE, ""),
        plain(NAME, str(engine), "by meaning: from the write's answer to the embedding, p50", samples.ms("meaning") / 1000, "s"),
        at_most(plain(NAME, str(engine), "by meaning: the same, p95", samples.ms("meaning", 0.95) / 1000, "s"), MOST_S),
        plain(NAME, str(engine), "by meaning: the longest", samples.ms("meaning", 1.0) / 1000, "s"),
        plain(NAME, str(engine), "load average", load_average(), ""),
    ]
    return [*figures, *await _on_disk(engine, folder / "disk", units, on_progress)]


def _by_words(service: Asked, door: Door, samples: Samples, on_progress: OnProgress) -> int:
    """Write a unit and ask for it by a word that it alone has, over and over: how often it was there."""
    chance = random.Random(815)  # noqa: S311 (made-up data)
    known = topics(BY_WORDS)
    found = 0
    for number, topic in enumerate(known):
        word = "".join(chance.choice(LETTERS) + chance.choice("aeiou") for _ in range(5))
        unit = ContextUnit(id=f"words-{number:03d}", kind=Kind.OBSERVATION, content=f"{topic.sentence} The ticket says {word}.")
        began = time.perf_counter()
        door.post("/v1/units", as_body([unit]))
        written = time.perf_counter()
        answer = service.ask(door, f"What does the ticket say about {word}?", 1_000)
        samples.add("write", written - began)
        samples.add("words", time.perf_counter() - written)
        found += unit.id in {each["id"] for each in answer["units"]}
        on_progress("by words: writing and asking", number + 1, BY_WORDS)
    return found


async def _by_meaning(service: Asked, door: Door, samples: Samples, on_progress: OnProgress) -> None:
    """A steady stream of single units; the graph is looked at for those that still wait."""
    units = [unit for run in runs(BY_MEANING, topics(), length=BY_MEANING) for unit in run.units]
    written: dict[str, float] = {}
    stream = threading.Thread(target=_stream, args=(door, units, written), name="writing")
    stream.start()
    seen: set[str] = set()
    until = time.perf_counter() + BY_MEANING / RATE + WAIT_S
    while len(seen) < len(units):
        # Before looking: who is written now and does not wait any more has its embedding.
        known = dict(written)
        waiting = {due.id for due in await service.lastro.embeddings.due(BY_MEANING)}
        now = time.perf_counter()
        for unit_id in known.keys() - waiting - seen:
            samples.add("meaning", now - known[unit_id])
            seen.add(unit_id)
        on_progress("by meaning: embedded", len(seen), len(units))
        if now > until:
            raise Wrong(f"{len(units) - len(seen)} units have no embedding")
        await asyncio.sleep(LOOK_S)
    stream.join()
    found = service.ask(door, units[0].content, 1_000)["receipt"]["search"]["found_by_vectors"]
    if found != len(units):
        raise Wrong(f"{found} of {len(units)} units were found by meaning")


def _stream(door: Door, units: Sequence[ContextUnit], written: dict[str, float]) -> None:
    began = time.perf_counter()
    for number, unit in enumerate(units):
        time.sleep(max(began + number / RATE - time.perf_counter(), 0.0))
        door.post("/v1/units", as_body([unit]))
        written[unit.id] = time.perf_counter()


async def _on_disk(engine: BenchEngine, folder: Path, units: int, on_progress: OnProgress) -> list[Figure]:
    """Bytes of the database's files, stopped cleanly, with the schema alone and then with the units; Neo4j's transaction logs do not count."""
    folder.mkdir()
    async with started(engine, folder, kept=True) as address, lastro_on(address, folder, embedder=EMBEDDER) as lastro:
        await has_model(lastro)
        await make_index(lastro, on_progress)
    empty = _size(engine, folder)
    known = topics()
    async with started(engine, folder, kept=True) as address, lastro_on(address, folder, embedder=EMBEDDER) as lastro:
        scope = lastro.registry.local("disk", "bench", role=Role.AGENT)
        await lastro.registry.ensure_tenant(scope)
        with driver(address) as connected:
            raw = Raw(connected, address)
            load_corpus(raw, scope, known, middles(known), units, on_progress=on_progress)
            raw.close()
    full = _size(engine, folder)
    content = sum(len(unit.content.encode()) for run in runs(units, known) for unit in run.units)
    return [
        plain(NAME, str(engine), "on disk: units", units, ""),
        plain(NAME, str(engine), "on disk: the schema alone", empty / 1e6, "MB"),
        plain(NAME, str(engine), "on disk: with the units", full / 1e6, "MB"),
        plain(NAME, str(engine), "on disk: a unit, with edges, indexes and a vector of 512 numbers", (full - empty) / units, "bytes"),
        plain(NAME, str(engine), "on disk: of it its text", content / units, "bytes"),
    ]


def _size(engine: BenchEngine, folder: Path) -> int:
    below = folder / "embedded" if engine is BenchEngine.EMBEDDED else folder / "neo4j" / "data" / "databases"
    return sum(file.stat().st_size for file in below.rglob("*") if file.is_file())
