"""`lastro demo`: the main job on a real run, with no server, no key and no network."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import tempfile
from collections.abc import Generator, Iterator
from importlib.resources import as_file, files
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from app.bootstrap import running
from app.cli import options, output
from app.cli.answer_view import show_left_out, show_receipt, show_tree
from app.importing import ImportReport, import_file
from app.operations import LocalOperations
from app.settings import EngineName, load_settings
from graph.model.answer import ContextAnswer
from graph.model.errors import ImportRefused
from graph.model.query import ContextQuery

EXAMPLES = "Examples:  lastro demo   |   lastro demo --step 9 --budget 900   |   lastro demo --file run.json"

TENANT, AGENT = "demo", "demo"
SHIPPED_STEP = 16
"""The step of the shipped incident at which the rollback is decided."""
GPT, CLAUDE = "gpt-5.2", "claude-opus-4-8"
DEADLINE_MS = 10_000
"""A first question on a cold or busy machine may take longer than the half second of a running service."""
PAYLOAD_LINES = 60
SIDE_BY_SIDE = 100
"""Columns of a terminal from which on two payloads stand beside each other."""


def demo(
    file: Annotated[
        Path | None,
        typer.Option(
            help="Your own transcript (OpenAI chat form) in place of the shipped one.", exists=True, dir_okay=False, show_default=False
        ),
    ] = None,
    step: Annotated[
        int | None, typer.Option(help="Step to ask for; the shipped run's decision, or the last step of yours.", show_default=False)
    ] = None,
    budget: Annotated[int, typer.Option(help="Most tokens, in each model's own.")] = 600,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the data in this folder, to look at it with other commands.", show_default=False)
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Import an agents' run into a fresh graph, ask what matters for one step, and show it for two models."""
    logging.getLogger("graph").setLevel(logging.CRITICAL)
    asyncio.run(_demo(file, step, budget, keep, as_json=as_json))


async def _demo(file: Path | None, step: int | None, budget: int, keep: Path | None, *, as_json: bool) -> None:
    laps: list[tuple[str, float]] = []
    with _folder(keep) as folder, _source(file) as source:
        with output.err.status("starting the embedded engine …"):
            began = monotonic()
            stack = contextlib.AsyncExitStack()
            lastro = await stack.enter_async_context(running(load_settings(engine=EngineName.EMBEDDED, data=folder)))
            laps.append(("start the engine, make the schema, warm up", monotonic() - began))
        async with stack:
            scope = lastro.registry.local(TENANT, AGENT)
            await lastro.registry.ensure_tenant(scope)
            door = LocalOperations(lastro, scope)
            began = monotonic()
            report = await import_file(door, source)
            laps.append((f"import {report.written} units", monotonic() - began))
            if not report.task_ids:
                raise ImportRefused("No unit of the file belongs to a task.", hint="Give a transcript, or units with metadata.task_id.")
            task = report.task_ids[-1]
            asked_step = step if step is not None else (SHIPPED_STEP if file is None else await _last_step(door, task))
            answers: list[ContextAnswer] = []
            for model in (GPT, CLAUDE):
                began = monotonic()
                answers.append(
                    await door.context(
                        ContextQuery(task_id=task, step=asked_step, budget_tokens=budget, model=model, deadline_ms=DEADLINE_MS)
                    )
                )
                laps.append((f"context for {model}", monotonic() - began))
            if as_json:
                output.print_json(
                    {
                        "import": _told(report),
                        "task_id": task,
                        "step": asked_step,
                        "answers": [item.model_dump(mode="json") for item in answers],
                    }
                )
            else:
                _show(task, asked_step, budget, report, answers)
        laps.append(("all of it, engine stopped", sum(seconds for _, seconds in laps)))
    if not as_json:
        output.table(["step", "seconds"], [(name, f"{seconds:.2f}") for name, seconds in laps], right=(1,))
        if keep is not None:
            output.out.print(
                f"\nThe graph is in {keep}. Look at it:  lastro units list --task {task} --data {keep} --tenant {TENANT}",
                markup=False,
                soft_wrap=True,
            )
        else:
            output.out.print("\nNext:  lastro demo --file YOUR_RUN.json   |   lastro serve   |   lastro --help", markup=False)


def _show(task: str, step: int, budget: int, report: ImportReport, answers: list[ContextAnswer]) -> None:
    output.out.print(
        Rule(
            f"task {task}: {report.written} units from {output.number_of(report.runs, 'run')}, what matters for step {step} in {budget} tokens"
        )
    )
    first = answers[0]
    show_tree(first)
    show_left_out(first)
    show_receipt(first)
    output.out.print(Rule("as two models get it, in the order of each one's attention"))
    panels = [_payload_panel(answer) for answer in answers]
    if output.out.width < SIDE_BY_SIDE:
        for panel in panels:
            output.out.print(panel)
        return
    grid = Table.grid(expand=True)
    for _ in panels:
        grid.add_column(ratio=1)
    grid.add_row(*panels)
    output.out.print(grid)


def _payload_panel(answer: ContextAnswer) -> Panel:
    assert answer.rendered is not None
    tokens = answer.consumption.tokens
    lines = "\n\n".join(_texts(answer.rendered.payload)).splitlines()
    shown = lines[:PAYLOAD_LINES] + ([f"… {len(lines) - PAYLOAD_LINES} more lines"] if len(lines) > PAYLOAD_LINES else [])
    cost = f"{output.count(tokens.value)} tokens, {tokens.method}" + (
        "" if tokens.low == tokens.high else f" ({tokens.low} to {tokens.high})"
    )
    return Panel(
        Text("\n".join(output.printable(line) for line in shown)),
        title=f"{answer.rendered.model} · {answer.rendered.api}",
        subtitle=f"{output.number_of(len(answer.units), 'unit')} · {cost}",
    )


def _texts(payload: dict[str, Any]) -> Iterator[str]:
    """The texts of a payload in order, each under the place that it stands in."""
    blocks: list[dict[str, str]] = payload.get("system") or []
    for block in blocks:
        yield f"── system\n{block['text']}"
    for message in payload["messages"]:
        content = message["content"]
        for text in [content] if isinstance(content, str) else [block["text"] for block in content]:
            yield f"── {message['role']}\n{text}"


async def _last_step(door: LocalOperations, task: str) -> int:
    page = await door.list_units(task_id=task, limit=1)
    return (page.units[0].metadata.task_step or 0) if page.units else 0


def _told(report: ImportReport) -> dict[str, object]:
    return {"written": report.written, "unchanged": report.unchanged, "runs": report.runs, "notes": report.notes}


@contextlib.contextmanager
def _folder(keep: Path | None) -> Generator[Path]:
    if keep is not None:
        yield keep
        return
    made = Path(tempfile.mkdtemp(prefix="lastro-demo-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def _source(file: Path | None) -> Generator[Path]:
    if file is not None:
        yield file
        return
    with as_file(files("app.demo").joinpath("incident.json")) as shipped:
        yield shipped
