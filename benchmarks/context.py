"""Context queries over a large graph through the HTTP door, beside the raw driver reading the same; with and without a hub."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from app.bootstrap import Lastro
from benchmarks import permissions
from benchmarks.engines import BenchEngine, lastro_on, started
from benchmarks.graph_loading import LoadedGraph, load_graph
from benchmarks.made_up import unit_id
from benchmarks.measuring import Figure, OnProgress, Samples, at_most, load_average, median, plain, rotated
from benchmarks.raw import Call, Raw, driver, recorded
from benchmarks.service import Door, on_address, serving
from graph.engines.base import Address
from graph.model.base import parse
from graph.model.query import ContextQuery
from graph.model.scope import AuthorizedScope, Role
from graph.order_keys import FOREVER_US
from graph.statements import Dialect

NAME = "context"
DEFAULT_UNITS = 100_000
QUERIES = 240
BUDGET = 2_000
MODEL = "gpt-5.2"
DEADLINE_MS = 60_000
"""Far above what is measured, so that no query falls back to a cheaper strategy."""
MOST_TIMES = 2.0
PLUS_MS = 5.0
MOST_WITH_HUB = 1.3
TENANTS = {"plain": "no-hub", "hub": "with-hub"}
STAGES = ("identify", "candidates", "load", "select", "render", "total")


@dataclass(slots=True)
class Side:
    """One tenant: its door, its raw session, and what to ask."""

    door: Door
    scope: AuthorizedScope
    calls: dict[str, list[Call]]
    """What the service reads for each query."""
    least: dict[str, Call]
    """The texts of the units that it chose: with the walk the least that any program needs."""
    chosen: list[int]


async def measure(engine: BenchEngine, folder: Path, units: int, on_progress: OnProgress) -> list[Figure]:
    """240 queries around random units, each by four ways in turn: service and raw driver, without and with a hub."""
    async with started(engine, folder) as address, lastro_on(address, folder) as lastro:
        with driver(address) as connected:
            began = time.perf_counter()
            graphs = await _load(lastro, address, units, on_progress)
            setup_s = time.perf_counter() - began
            raw = Raw(connected, address)
            with serving(folder, on_address(address)) as served:
                chance = random.Random(815)  # noqa: S311 (made-up data)
                asked = [unit_id(chance.randrange(units // 10, units)) for _ in range(QUERIES)]
                sides = {name: await _side(lastro, served.port, tenant) for name, tenant in TENANTS.items()}
                samples = Samples()
                stages = Samples()
                # Once for each before the clock runs: it warms both, and says which units the raw side has to read.
                for place, around in enumerate(asked):
                    for side in sides.values():
                        await _prepare(lastro, raw, side, around)
                    on_progress("warming up", place + 1, len(asked))
                _rounds(raw, sides, asked, samples, stages, on_progress)
                for side in sides.values():
                    side.door.close()
                await permissions.open_to_reader(lastro, TENANTS["plain"], "bench")
                found = await permissions.doors(lastro, served.port, TENANTS["plain"])
                same = permissions.ask_in_turn(found, [_query(around) for around in asked], samples, on_progress)
                for door in found.values():
                    door.close()
            raw.close()
    told = _figures(str(engine), samples, stages, sides, graphs, setup_s)
    return [*told, *permissions.figures(str(engine), samples, same, len(asked))]


async def _load(lastro: Lastro, address: Address, units: int, on_progress: OnProgress) -> dict[str, LoadedGraph]:
    """Both graphs: on Neo4j at once, by a connection each; on the embedded engine one after the other, as its writers disturb each other."""

    def load(scope: AuthorizedScope, *, hub: bool) -> LoadedGraph:
        with driver(address) as connected:
            raw = Raw(connected, address)
            loaded = load_graph(raw, scope, units, hub=hub, on_progress=on_progress)
            raw.close()
        return loaded

    scopes = {name: lastro.registry.local(tenant, "bench", role=Role.AGENT) for name, tenant in TENANTS.items()}
    for scope in scopes.values():
        await lastro.registry.ensure_tenant(scope)
    if lastro.database.statements.dialect is Dialect.EMBEDDED:
        return {name: load(scope, hub=name == "hub") for name, scope in scopes.items()}
    loaded = await asyncio.gather(*(asyncio.to_thread(load, scope, hub=name == "hub") for name, scope in scopes.items()))
    return dict(zip(scopes, loaded, strict=True))


async def _side(lastro: Lastro, port: int, tenant: str) -> Side:
    scope = lastro.registry.local(tenant, "bench", role=Role.AGENT)
    key = await lastro.registry.create_key(scope, agent_id="bench", role=Role.AGENT)
    return Side(Door(port, key.text), scope, {}, {}, [])


def _query(around: str) -> Mapping[str, object]:
    return {"unit_id": around, "budget_tokens": BUDGET, "model": MODEL, "deadline_ms": DEADLINE_MS}


async def _prepare(lastro: Lastro, raw: Raw, side: Side, around: str) -> None:
    side.door.context(_query(around))
    with recorded(lastro.database) as calls:
        answer = await lastro.router.answer_within(parse(ContextQuery, orjson.dumps(_query(around))), side.scope)
    side.calls[around] = calls
    ids = sorted(unit.id for unit in answer.units)
    side.chosen.append(len(ids))
    side.least[around] = raw.bound("units/read_units_by_id", {**side.scope.parameters, "ids": ids, "as_of_us": FOREVER_US})
    for call in calls:
        raw.read(call)


def _rounds(raw: Raw, sides: dict[str, Side], asked: list[str], samples: Samples, stages: Samples, on_progress: OnProgress) -> None:
    def by_service(side: Side, name: str, around: str) -> None:
        answer = side.door.context(_query(around))
        for stage in STAGES:
            stages.add(f"{name} {stage}", answer["receipt"]["timings_ms"].get(stage, 0.0) / 1000)

    def by_raw(side: Side, name: str, around: str) -> None:
        walk, *reads = side.calls[around]
        began = time.perf_counter()
        raw.read(walk)
        between = time.perf_counter()
        for call in reads:
            raw.read(call)
        samples.add(f"{name} raw walk", between - began)
        samples.add(f"{name} raw read", time.perf_counter() - between)

    def by_least(side: Side, name: str, around: str) -> None:
        began = time.perf_counter()
        raw.read(side.least[around])
        samples.add(f"{name} raw least", samples.last(f"{name} raw walk") + time.perf_counter() - began)

    ways: list[tuple[str, Callable[[Side, str, str], None]]] = [("service", by_service), ("raw", by_raw)]
    turns = [(name, side, way, work) for name, side in sides.items() for way, work in ways]
    for number, around in enumerate(asked):
        for name, side, way, work in rotated(turns, number):
            began = time.perf_counter()
            work(side, name, around)
            samples.add(f"{name} {way}", time.perf_counter() - began)
        for name, side in sides.items():
            by_least(side, name, around)
        on_progress("asking, four ways in turn", number + 1, len(asked))


def _figures(
    engine: str, samples: Samples, stages: Samples, sides: dict[str, Side], graphs: dict[str, LoadedGraph], setup_s: float
) -> list[Figure]:
    graph = graphs["plain"]
    figures = [
        plain(NAME, engine, "units in each tenant", graph.units, ""),
        plain(NAME, engine, "edges between them", graph.edges, ""),
        plain(NAME, engine, "edges to the hub", graphs["hub"].hub_edges, ""),
        plain(NAME, engine, "setup", setup_s, "s"),
    ]
    for name, label in (("plain", "no hub"), ("hub", "with hub")):
        for share in (0.5, 0.95):
            told = f"{label}, p{share * 100:.0f}"
            raw_ms, service_ms = samples.ms(f"{name} raw", share), samples.ms(f"{name} service", share)
            over = plain(NAME, engine, f"{told}: service", service_ms, "ms")
            figures += [
                plain(NAME, engine, f"{told}: raw statements", raw_ms, "ms"),
                at_most(over, round(MOST_TIMES * raw_ms + PLUS_MS, 1)) if name == "plain" else over,
            ]
        figures += [
            plain(
                NAME, engine, f"{label}: service beside raw, median of rounds", samples.paired_ratio(f"{name} service", f"{name} raw"), "x"
            ),
            plain(NAME, engine, f"{label}: raw walk, p50", samples.ms(f"{name} raw walk"), "ms"),
            plain(NAME, engine, f"{label}: raw reading of texts and needs, p50", samples.ms(f"{name} raw read"), "ms"),
            plain(NAME, engine, f"{label}: raw walk and the chosen alone, p50", samples.ms(f"{name} raw least"), "ms"),
            plain(NAME, engine, f"{label}: round trips, median", median([len(calls) for calls in sides[name].calls.values()]), ""),
            plain(NAME, engine, f"{label}: units in an answer, median", median(sides[name].chosen), ""),
        ]
        figures += [plain(NAME, engine, f"{label}: service, {stage}, p50", stages.ms(f"{name} {stage}"), "ms") for stage in STAGES]
    for share in (0.5, 0.95):
        ratio = samples.ms("hub service", share) / samples.ms("plain service", share)
        figures.append(at_most(plain(NAME, engine, f"hub beside no hub, service, p{share * 100:.0f}", ratio, "x"), MOST_WITH_HUB))
    ratio = samples.paired_ratio("hub service", "plain service")
    figures.append(plain(NAME, engine, "hub beside no hub, service, median of rounds", ratio, "x"))
    figures.append(plain(NAME, engine, "load average", load_average(), ""))
    return figures
