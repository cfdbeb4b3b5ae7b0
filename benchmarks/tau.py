"""A hundred real agent runs imported twice by the path of `lastro import`, and a context for each of their steps."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from adapters.importers.transcript_files import read_runs
from adapters.importers.transcript_units import convert
from adapters.tokenizers import Tokenizers
from app.importing import Checkpoint, Progress, import_file
from app.operations import LocalOperations
from benchmarks.engines import BenchEngine, lastro_on, started
from benchmarks.measuring import Figure, OnProgress, Samples, at_most, load_average, plain
from graph.model.query import ContextQuery
from graph.model.units import ContextUnit, EdgeType, Kind

NAME = "tau"
FILE = Path("tau_airline") / "runs.jsonl"
BUDGET = 600
MODEL = "gpt-5.2"
DEADLINE_MS = 60_000
MOST_S = 120.0
"""Contexts are asked for every step until this has passed; then the rest of the runs is left."""


class Wrong(Exception):
    """Something that must hold did not: the benchmark ends, as its figures would mean nothing."""


@dataclass(slots=True)
class Checked:
    """What was looked at."""

    results: int = 0
    contexts: int = 0
    runs: int = 0
    samples: Samples = field(default_factory=Samples)


async def measure(engine: BenchEngine, folder: Path, data: Path, on_progress: OnProgress) -> list[Figure]:
    """Import twice, check, and ask for every step.

    Raises:
        Wrong: the second import changed something, a result has no call, a pair was split, or a budget was passed.
    """
    source = data / FILE
    async with started(engine, folder) as address, lastro_on(address, folder, warm_up=True) as lastro:
        scope = lastro.registry.local("tau", "bench")
        await lastro.registry.ensure_tenant(scope)
        operations = LocalOperations(lastro, scope)
        checkpoint = Checkpoint(folder, source, "bench")
        reports: list[Any] = []
        took: list[float] = []
        for turn in ("first", "second"):

            def tell(progress: Progress, turn: str = turn) -> None:
                on_progress(f"{turn} import, runs", progress.done, progress.total or 100)

            began = time.perf_counter()
            reports.append(await import_file(operations, source, checkpoint=checkpoint, on_progress=tell))
            took.append(time.perf_counter() - began)
        first, second = reports
        _must(first.unchanged == 0, "the first import found units that were there")
        _must(second.written == 0 and second.unchanged == first.written, "the second import changed something")
        checked = await _check(operations, first.task_ids, on_progress)
    return _figures(str(engine), first, took, checked, _sizes(source))


async def _check(operations: LocalOperations, task_ids: Sequence[str], on_progress: OnProgress) -> Checked:
    checked = Checked()
    began = time.perf_counter()
    for place, task_id in enumerate(task_ids):
        units = await units_of(operations, task_id)
        checked.results += _check_results(units)
        checked.runs += 1
        if time.perf_counter() - began < MOST_S:
            for step in sorted({unit.metadata.task_step or 0 for unit in units.values()}):
                await _check_step(operations, task_id, step, units, checked)
        on_progress("a context for every step, runs", place + 1, len(task_ids))
    return checked


async def units_of(operations: LocalOperations, task_id: str) -> dict[str, ContextUnit]:
    """All units of a task, by id."""
    found: dict[str, ContextUnit] = {}
    cursor: str | None = None
    while True:
        page = await operations.list_units(task_id=task_id, limit=200, cursor=cursor)
        found.update((unit.id, unit) for unit in page.units)
        cursor = page.next
        if cursor is None:
            return found


def call_of(result: ContextUnit, units: dict[str, ContextUnit]) -> ContextUnit | None:
    """The call that caused a result: a decision with the same tool and call id."""
    for relation in result.relations:
        call = units.get(relation.target_id)
        if (
            relation.edge_type is EdgeType.CAUSATION
            and call is not None
            and call.kind is Kind.DECISION
            and call.metadata.tool is not None
            and result.metadata.tool is not None
            and call.metadata.tool.call_id == result.metadata.tool.call_id
        ):
            return call
    return None


def split_pairs(answer: Iterable[str], units: dict[str, ContextUnit], step: int) -> list[str]:
    """Ids of results in the answer without their call, and of calls whose results, known by ``step``, are not all in it."""
    there = set(answer)
    wrong: list[str] = []
    for unit in units.values():
        if unit.kind is not Kind.TOOL_RESULT:
            continue
        call = call_of(unit, units)
        if call is None:
            continue
        if unit.id in there and call.id not in there:
            wrong.append(unit.id)
        if call.id in there and unit.id not in there and (unit.metadata.task_step or 0) <= step:
            wrong.append(call.id)
    return wrong


def _check_results(units: dict[str, ContextUnit]) -> int:
    results = [unit for unit in units.values() if unit.kind is Kind.TOOL_RESULT]
    for unit in results:
        _must(call_of(unit, units) is not None, f"{unit.id} is caused by no call")
    return len(results)


async def _check_step(operations: LocalOperations, task_id: str, step: int, units: dict[str, ContextUnit], checked: Checked) -> None:
    query = ContextQuery(task_id=task_id, step=step, budget_tokens=BUDGET, model=MODEL, deadline_ms=DEADLINE_MS)
    began = time.perf_counter()
    answer = await operations.context(query)
    checked.samples.add("context", time.perf_counter() - began)
    checked.contexts += 1
    _must(answer.consumption.tokens.value <= BUDGET, f"{task_id} step {step}: {answer.consumption.tokens.value} tokens")
    wrong = split_pairs((unit.id for unit in answer.units), units, step)
    _must(not wrong, f"{task_id} step {step}: split at {wrong[:3]}")


@dataclass(slots=True)
class _Sizes:
    """Tokens (o200k_base) of what tools returned as JSON, before and after; and of everything said."""

    json_before: int = 0
    json_after: int = 0
    results: int = 0


def _sizes(source: Path) -> _Sizes:
    """Results are told apart by order: the converter keeps it, one unit for each message with text."""
    tokenizers = Tokenizers()
    sizes = _Sizes()
    for run in read_runs(source):
        said: list[Any] = [message["content"] for message in run.messages if isinstance(message, dict) and message.get("role") == "tool"]
        results = [unit for unit in convert(run).units if unit.kind is Kind.TOOL_RESULT]
        if len(said) != len(results):
            raise Wrong(f"{run.task_id}: {len(said)} results became {len(results)} units")
        for text, unit in zip(said, results, strict=True):
            if _is_json(text):
                sizes.results += 1
                sizes.json_before += tokenizers.count_o200k(text)
                sizes.json_after += tokenizers.count_o200k(unit.content)
    return sizes


def _is_json(text: object) -> bool:
    if not isinstance(text, str) or not text.lstrip().startswith(("{", "[")):
        return False
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Wrong(otherwise)


def _figures(engine: str, first: Any, took: Sequence[float], checked: Checked, sizes: _Sizes) -> list[Figure]:
    contexts_s = sum(checked.samples.seconds["context"])
    share = plain(NAME, engine, "markdown tokens beside the JSON's", sizes.json_after / sizes.json_before, "of JSON")
    return [
        plain(NAME, engine, "runs", first.runs, ""),
        plain(NAME, engine, "units", first.written, ""),
        plain(NAME, engine, "first import", first.written / took[0], "units/s"),
        plain(NAME, engine, "second import (all unchanged)", first.written / took[1], "units/s"),
        plain(NAME, engine, "results, each caused by its call", checked.results, ""),
        plain(NAME, engine, "contexts, none splits a pair or passes 600 tokens", checked.contexts, ""),
        plain(NAME, engine, "contexts a second, one after another", checked.contexts / contexts_s, "1/s"),
        plain(NAME, engine, "a context, p50", checked.samples.ms("context"), "ms"),
        plain(NAME, engine, "a context, p95", checked.samples.ms("context", 0.95), "ms"),
        plain(NAME, engine, "tool results that are JSON", sizes.results, ""),
        plain(NAME, engine, "their tokens as JSON", sizes.json_before, ""),
        plain(NAME, engine, "their tokens as markdown", sizes.json_after, ""),
        at_most(share, 1.0),
        plain(NAME, engine, "load average", load_average(), ""),
    ]
