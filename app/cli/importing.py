"""`lastro import`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from adapters.importers.formats import FORMATS
from app.cli import options, output
from app.cli.access import Target, operations
from app.importing import Checkpoint, ImportReport, Progress, import_file
from app.settings import load_settings
from graph.model.errors import ImportRefused, Unavailable

EXAMPLES = (
    "Examples:  lastro import run.json   |   lastro import runs.jsonl --format openai-chat --task nightly   |   "
    "lastro import units.ndjson --json.   Formats: " + ", ".join(f"{name} ({what})" for name, what in FORMATS.items())
)


def import_(
    file: Annotated[Path, typer.Argument(help="File to read.", exists=True, dir_okay=False, readable=True)],
    format: Annotated[str, typer.Option(help=f"auto (each record shows its own), {', '.join(FORMATS)}.")] = "auto",
    session: Annotated[str | None, typer.Option(help="Session of the units; the run's own when left out.", show_default=False)] = None,
    task: Annotated[str | None, typer.Option(help="Task of a transcript; the file's own when left out.", show_default=False)] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Read from the beginning even if an earlier import broke off.")] = False,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    tenant: options.Tenant = "local",
    agent: options.Agent = "cli",
    as_json: options.Json = False,
) -> None:
    """Import units or transcripts. Stored batch by batch; repeating it changes nothing; a broken one goes on where it was."""
    if not file.is_file():
        raise ImportRefused("This is no regular file.")
    target = Target(url, key, engine, data, tenant, agent, session)
    checkpoint = Checkpoint(load_settings(data=data).data, file, target.name)
    if restart:
        checkpoint.clear()
    with output.progress() as bar:
        task_bar = bar.add_task("importing", total=None, visible=not as_json)

        def on_progress(progress: Progress) -> None:
            bar.update(
                task_bar, completed=progress.done, total=progress.total or None, description=output.number_of(progress.units, "unit")
            )

        async def work() -> ImportReport:
            async with operations(target) as door:
                return await import_file(
                    door, file, format=format, session_id=session, task_id=task, checkpoint=checkpoint, on_progress=on_progress
                )

        try:
            report = asyncio.run(work())
        except Unavailable as error:
            error.hint = f"{error.hint} Then run the same command again: it goes on after the last batch that was acknowledged."
            raise
    if as_json:
        output.print_json(
            {
                "format": report.format,
                "formats": report.formats,
                "written": report.written,
                "unchanged": report.unchanged,
                "batches": report.batches,
                "runs": report.runs,
                "originals": report.originals,
                "resumed_at": report.resumed_at,
                "notes": report.notes,
                "task_ids": report.task_ids,
            }
        )
        return
    batches = output.number_of(report.batches, "batch", "batches")
    output.out.print(f"{report.written} written, {report.unchanged} unchanged, {batches} ({report.format})", markup=False)
    if report.originals:
        output.out.print(f"{output.number_of(report.originals, 'file')} in the attachment store", markup=False)
    for note, times in report.notes.items():
        output.err.print(f"  {times} x {note}", markup=False)
    if report.task_ids:
        shown = ", ".join(report.task_ids[:3]) + (" …" if len(report.task_ids) > 3 else "")  # noqa: PLR2004 (a line)
        output.err.print(
            f"Tasks: {shown}.  Ask with: lastro context --task {report.task_ids[0]} --model gpt-5.2", markup=False, soft_wrap=True
        )
