"""How much of a payload stands at its front as in the step before: what the vendors' prompt caches can keep, with each order of units."""

from __future__ import annotations

import statistics
import time
from itertools import pairwise
from os.path import commonprefix
from pathlib import Path

import orjson

from app.importing import Checkpoint, import_file
from app.operations import LocalOperations
from benchmarks.engines import BenchEngine, lastro_on, started
from benchmarks.measuring import Figure, OnProgress, load_average, plain
from benchmarks.tau import FILE, units_of
from graph.model.query import ContextQuery

NAME = "prefix"
MODEL = "gpt-5.2"
BUDGETS = (600, 2_000, 8_000)
"""Tokens: far less than a run has, some of it, most of it."""
RUNS = 20
DEADLINE_MS = 60_000
MOST_S = 300.0
"""Runs are asked about until this has passed."""


async def measure(engine: BenchEngine, folder: Path, data: Path, on_progress: OnProgress) -> list[Figure]:
    """Ask for a context for every step of real runs, in both orders, and compare each payload with that of the step before."""
    source = data / FILE
    async with started(engine, folder) as address, lastro_on(address, folder, warm_up=True) as lastro:
        scope = lastro.registry.local("prefix", "bench")
        await lastro.registry.ensure_tenant(scope)
        operations = LocalOperations(lastro, scope)
        report = await import_file(operations, source, checkpoint=Checkpoint(folder, source, "bench"), on_progress=lambda _: None)
        shares: dict[tuple[int, bool], list[float]] = {(budget, stable): [] for budget in BUDGETS for stable in (False, True)}
        began = time.perf_counter()
        for place, task_id in enumerate(report.task_ids[:RUNS]):
            if time.perf_counter() - began > MOST_S:
                break
            units = await units_of(operations, task_id)
            steps = sorted({unit.metadata.task_step or 0 for unit in units.values()})
            for budget, stable in shares:
                payloads = [await _payload(operations, task_id, step, budget, stable=stable) for step in steps]
                shares[budget, stable] += [_share(before, after) for before, after in pairwise(payloads)]
            on_progress("runs", place + 1, RUNS)
    figures = [
        plain(NAME, str(engine), f"of {budget} tokens, {'stable prefix' if stable else 'by attention'}, {name}", 100 * value, "% of bytes")
        for (budget, stable), found in shares.items()
        if found
        for name, value in (("mean", statistics.fmean(found)), ("median", statistics.median(found)))
    ]
    return [*figures, plain(NAME, str(engine), "load average", load_average(), "")]


async def _payload(operations: LocalOperations, task_id: str, step: int, budget: int, *, stable: bool) -> bytes:
    query = ContextQuery(task_id=task_id, step=step, budget_tokens=budget, model=MODEL, stable_prefix=stable, deadline_ms=DEADLINE_MS)
    answer = await operations.context(query)
    assert answer.rendered is not None
    return orjson.dumps(answer.rendered.payload)


def _share(before: bytes, after: bytes) -> float:
    """Bytes at the front that are the same, of the later payload's."""
    return len(commonprefix([before, after])) / len(after)  # noqa: RUF071 (characters are what is compared)
