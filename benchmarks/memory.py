"""Resident memory of the service and of the embedded engine's child, after start and under load, by size of the heap."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from app.settings import load_settings
from benchmarks.made_up import as_body, runs, unit_id
from benchmarks.measuring import Figure, OnProgress, at_most, load_average, median, plain
from benchmarks.service import Door, ServiceFailed, children_of, environment, make_key, memory_of, serving

NAME = "memory"
DEFAULT_UNITS = 50_000
BATCH = 500
QUERIES = 200
SERVICE_MB = 250
ENGINE_MB = 700


async def measure(folder: Path, units: int, heaps: Sequence[int], on_progress: OnProgress) -> list[Figure]:
    """`lastro serve --engine embedded`, ``units`` units through its door, then queries; once for each heap (MiB; none: the default)."""
    figures: list[Figure] = []
    for heap in heaps or [load_settings().embedded_heap_mb]:
        figures += _one(folder / f"heap-{heap}", heap, units, on_progress)
    return [*figures, plain(NAME, "embedded", "load average", load_average(), "")]


def _one(folder: Path, heap: int, units: int, on_progress: OnProgress) -> list[Figure]:
    folder.mkdir()
    surroundings = environment(embedded_heap_mb=str(heap))
    key = make_key(folder, surroundings, "bench")
    rates: list[float] = []
    with serving(folder, surroundings) as served:
        child = _engine_of(served.pid)
        door = Door(served.port, key)
        service_fresh, engine_fresh = memory_of(served.pid), memory_of(child)
        written = 0
        for made in runs(units, BATCH):
            body = as_body(made.units)
            began = time.perf_counter()
            door.post("/v1/units", body)
            rates.append(len(made.units) / (time.perf_counter() - began))
            written += len(made.units)
            on_progress(f"heap {heap} MiB: writing", written, units)
        for number in range(QUERIES):
            door.context({"unit_id": unit_id(number * units // QUERIES), "budget_tokens": 2_000, "model": "gpt-5.2", "deadline_ms": 60_000})
            on_progress(f"heap {heap} MiB: asking", number + 1, QUERIES)
        service_full, engine_full = memory_of(served.pid), memory_of(child)
        door.close()
    told = f"heap {heap} MiB"
    return [
        plain(NAME, "embedded", f"{told}: service after start", service_fresh.now, "MB"),
        plain(NAME, "embedded", f"{told}: service after load", service_full.now, "MB"),
        at_most(plain(NAME, "embedded", f"{told}: service, peak", service_full.peak, "MB"), SERVICE_MB),
        plain(NAME, "embedded", f"{told}: engine after start", engine_fresh.now, "MB"),
        plain(NAME, "embedded", f"{told}: engine after {units} units", engine_full.now, "MB"),
        at_most(plain(NAME, "embedded", f"{told}: engine, peak", engine_full.peak, "MB"), ENGINE_MB),
        plain(NAME, "embedded", f"{told}: write rate, median of batches", median(rates), "units/s"),
        plain(NAME, "embedded", f"{told}: write rate, last tenth", median(rates[-max(len(rates) // 10, 1) :]), "units/s"),
    ]


def _engine_of(pid: int) -> int:
    """The process of the embedded engine, which is a child of the service's."""
    for child in children_of(pid):
        if "embedded_child.py" in Path(f"/proc/{child}/cmdline").read_text("utf-8", "replace"):
            return child
    raise ServiceFailed("the service has no embedded engine; is this Linux?")
