"""Write rate: batches through the HTTP door, through the write path in this process, and by the raw driver."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import neo4j
from neo4j.exceptions import TransientError

from adapters.base import unit_body
from adapters.tokenizers import Tokenizers
from app.bootstrap import Lastro
from app.ingest import completed
from app.settings import load_settings
from benchmarks.engines import BenchEngine, lastro_on, started
from benchmarks.graph_loading import prepared
from benchmarks.made_up import as_body, one_run
from benchmarks.measuring import Clock, Figure, OnProgress, Samples, at_least, load_average, plain, rotated
from benchmarks.raw import WRITE_TRIES, Call, Raw, driver, guard_calls, write_calls
from benchmarks.service import Door, on_address, serving
from graph.engines.base import Address
from graph.model.base import parse
from graph.model.batch import check_batch
from graph.model.content import check_content
from graph.model.scope import AuthorizedScope, Role
from graph.model.units import ContextUnit, UnitBatch, digest
from graph.preparation import PreparedUnit
from graph.unit_rows import unit_row

BATCH = 500
WARM_UP_BATCHES = 6
TARGET = 0.7
NAME = "write"
DEFAULT_UNITS = 10_000

Batches = Sequence[Sequence[ContextUnit]]


async def measure(engine: BenchEngine, folder: Path, units: int, on_progress: OnProgress) -> list[Figure]:
    """``units`` units by each of the ways, a batch of each in turn, every way in a tenant of its own."""
    batches = _batches(units)
    samples = Samples()
    async with started(engine, folder) as address, lastro_on(address, folder) as lastro:
        key = await lastro.registry.create_key(lastro.registry.local("by-http", "operator"), agent_id="bench", role=Role.AGENT)
        with serving(folder, on_address(address)) as served, driver(address) as connected:
            door = Door(served.port, key.text)
            async with _asynchronous(address) as connected_async:
                await _rounds(lastro, door, connected, connected_async, address, batches, samples, on_progress)
            door.close()
    stages = _stages(lastro, batches[-1], samples)
    return _figures(str(engine), samples, stages)


def _batches(units: int) -> Batches:
    number = WARM_UP_BATCHES + max(units // BATCH, 4)
    run = one_run(number * BATCH)
    return [run[start : start + BATCH] for start in range(0, len(run), BATCH)]


async def _rounds(
    lastro: Lastro,
    door: Door,
    connected: neo4j.Driver,
    connected_async: neo4j.AsyncDriver,
    address: Address,
    batches: Batches,
    samples: Samples,
    on_progress: OnProgress,
) -> None:
    scopes = {way: lastro.registry.local(way, "bench", role=Role.AGENT) for way in ("raw", "raw-async", "raw-unguarded", "in-process")}
    for scope in scopes.values():
        await lastro.registry.ensure_tenant(scope)
    tokenizers = Tokenizers()
    raw = Raw(connected, address)
    recorded_at = datetime.now(UTC)
    for number, batch in enumerate(batches):
        # Everything that is only ours to prepare is prepared before the clock runs: bodies, and rows for the raw driver.
        body = as_body(batch)
        calls = {
            way: _raw_calls(raw, scopes[way], [prepared(unit, scopes[way], tokenizers, recorded_at) for unit in batch], way, number)
            for way in ("raw", "raw-async", "raw-unguarded")
        }

        async def by_raw(calls: Sequence[Call] = calls["raw"]) -> None:
            raw.write(calls)

        async def by_raw_unguarded(calls: Sequence[Call] = calls["raw-unguarded"]) -> None:
            raw.write(calls)

        async def by_raw_async(calls: Sequence[Call] = calls["raw-async"]) -> None:
            await _write_async(connected_async, address, raw, calls)

        async def by_http(body: bytes = body) -> None:
            door.post("/v1/units", body)

        async def in_process(batch: Sequence[ContextUnit] = batch) -> None:
            await lastro.ingest.write(scopes["in-process"], batch)

        ways: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("raw", by_raw),
            ("http", by_http),
            ("raw-async", by_raw_async),
            ("raw-unguarded", by_raw_unguarded),
            ("in-process", in_process),
        ]
        for way, work in rotated(ways, number):
            began = time.perf_counter()
            await work()
            took = time.perf_counter() - began
            if number >= WARM_UP_BATCHES:
                samples.add(way, took)
        on_progress("writing batches of 500, five ways in turn", number + 1, len(batches))
    raw.close()


def _raw_calls(raw: Raw, scope: AuthorizedScope, batch: Sequence[PreparedUnit], way: str, number: int) -> list[Call]:
    return [*([] if way == "raw-unguarded" else guard_calls(raw, scope, batch)), *write_calls(raw, scope, batch, place=number * BATCH)]


def _asynchronous(address: Address) -> neo4j.AsyncDriver:
    return neo4j.AsyncGraphDatabase.driver(  # pyright: ignore[reportUnknownMemberType] (the driver's own **config)
        address.uri, auth=(address.user, address.password), notifications_min_severity="OFF", telemetry_disabled=True
    )


async def _write_async(connected: neo4j.AsyncDriver, address: Address, raw: Raw, calls: Sequence[Call]) -> None:
    async with connected.session(database=address.database) as session:  # pyright: ignore[reportUnknownMemberType] (as above)
        for tries_left in reversed(range(WRITE_TRIES)):
            try:
                async with await session.begin_transaction() as transaction:
                    for name, bound in calls:
                        await (await transaction.run(raw.statements[name].literal, bound)).consume()
                    await transaction.commit()
            except TransientError:
                if not tries_left:
                    raise
            else:
                return


def _stages(lastro: Lastro, batch: Sequence[ContextUnit], samples: Samples, times: int = 7) -> dict[str, float]:
    """What each step of the service's own costs a batch, ms; on one core without anything else to do in this process."""
    scope = lastro.registry.local("stages", "bench", role=Role.AGENT)
    tokenizers = Tokenizers()
    most = load_settings().max_content_bytes
    body = as_body(batch)
    whole = [completed(unit, scope) for unit in batch]
    at = datetime.now(UTC)
    digests = [digest(unit) for unit in whole]
    steps: dict[str, Callable[[], object]] = {
        "parse JSON into models": lambda: parse(UnitBatch, body, batch_field="units"),
        "check batch and markdown": lambda: (check_batch(batch), [check_content(unit.content, most) for unit in batch]),
        "complete and digest": lambda: [digest(completed(unit, scope)) for unit in batch],
        "count tokens": lambda: [tokenizers.count_o200k(unit_body(unit)) for unit in batch],
        "make rows": lambda: [
            unit_row(unit, scope.principal, said, 60, at, [unit.content]) for unit, said in zip(whole, digests, strict=True)
        ],
    }
    for _ in range(times):
        for name, step in steps.items():
            samples.add(name, Clock.of(step))
    return {name: samples.ms(name) for name in steps}


def _figures(engine: str, samples: Samples, stages: dict[str, float]) -> list[Figure]:
    def rate(way: str) -> float:
        return BATCH / (samples.ms(way) / 1000)

    best = min(("raw", "raw-async"), key=samples.ms)
    own = sum(stages.values())
    figures = [
        plain(NAME, engine, "raw driver, blocking", rate("raw"), "units/s"),
        plain(NAME, engine, "raw driver, async", rate("raw-async"), "units/s"),
        plain(NAME, engine, "raw driver, blocking, without lock and look-up", rate("raw-unguarded"), "units/s"),
        plain(NAME, engine, "through HTTP", rate("http"), "units/s"),
        plain(NAME, engine, "in process (ingest.write)", rate("in-process"), "units/s"),
        at_least(plain(NAME, engine, "HTTP beside the faster raw driver", samples.ms(best) / samples.ms("http"), "of raw"), TARGET),
        plain(NAME, engine, "the same, median of rounds", 1 / samples.paired_ratio("http", best), "of raw"),
        plain(
            NAME, engine, "HTTP beside the raw driver without lock and look-up", samples.ms("raw-unguarded") / samples.ms("http"), "of raw"
        ),
        plain(NAME, engine, "in process beside the faster raw driver", samples.ms(best) / samples.ms("in-process"), "of raw"),
        plain(NAME, engine, "a batch: raw", samples.ms(best), "ms"),
        plain(NAME, engine, "a batch: HTTP", samples.ms("http"), "ms"),
        plain(NAME, engine, "a batch: in process", samples.ms("in-process"), "ms"),
    ]
    figures += [plain(NAME, engine, f"  of it: {name}", took, "ms") for name, took in stages.items()]
    in_database = samples.ms("in-process") - (own - stages["parse JSON into models"])
    figures += [
        plain(NAME, engine, "  of it: database, lock and checks included", in_database, "ms"),
        plain(
            NAME, engine, "  of it: HTTP and key", samples.ms("http") - samples.ms("in-process") - stages["parse JSON into models"], "ms"
        ),
        plain(NAME, engine, "load average", load_average(), ""),
    ]
    return figures
