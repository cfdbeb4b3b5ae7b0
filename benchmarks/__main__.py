"""The command line of the benchmarks."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import context, memory, tau, write
from benchmarks.engines import BenchEngine
from benchmarks.measuring import Figure, load_average

BOTH = (BenchEngine.EMBEDDED, BenchEngine.NEO4J_LTS)
DEFAULT_DATA = Path("../shared/data")


class What(StrEnum):
    """Which benchmark."""

    WRITE = "write"
    CONTEXT = "context"
    MEMORY = "memory"
    TAU = "tau"
    ALL = "all"


def main(
    what: Annotated[What, typer.Argument(help="Which one.")] = What.ALL,
    engine: Annotated[
        list[BenchEngine] | None, typer.Option(help="Only this engine; may be given more than once.", show_default=False)
    ] = None,
    units: Annotated[
        int | None,
        typer.Option(min=1_000, help="Units, instead of each benchmark's own number: write 10000, context 100000, memory 50000."),
    ] = None,
    heap: Annotated[
        list[int] | None, typer.Option(help="memory: heap of the embedded engine in MiB; may be given more than once.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Measure Lastro beside the raw driver. Real data is read from LASTRO_DATA, by default ../shared/data."""
    data = _data_folder()
    err = Console(stderr=True, highlight=False)
    wanted = [each for each in What if each is not What.ALL] if what is What.ALL else [what]
    figures: list[Figure] = []
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=err, transient=True
    ) as bars:
        for each in wanted:
            if each is What.TAU and not (data / tau.FILE).is_file():
                err.print(f"tau is left out: there is no {data / tau.FILE}. Set LASTRO_DATA to the folder that holds it.", markup=False)
                continue
            for on in engine or BOTH:
                if each is What.MEMORY and on is not BenchEngine.EMBEDDED:
                    continue
                with tempfile.TemporaryDirectory(prefix="lastro-bench-") as folder:
                    figures += asyncio.run(_one(each, on, Path(folder), data, units, heap or [], _Bars(bars, f"{each} on {on}")))
    if as_json:
        told = {"load_average": load_average(), "cores": os.cpu_count(), "figures": [asdict(figure) for figure in figures]}
        sys.stdout.write(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        Console(highlight=False).print(_table(figures))


async def _one(what: What, engine: BenchEngine, folder: Path, data: Path, units: int | None, heaps: list[int], bars: _Bars) -> list[Figure]:
    match what:
        case What.WRITE:
            return await write.measure(engine, folder, units or write.DEFAULT_UNITS, bars)
        case What.CONTEXT:
            return await context.measure(engine, folder, units or context.DEFAULT_UNITS, bars)
        case What.MEMORY:
            return await memory.measure(folder, units or memory.DEFAULT_UNITS, heaps, bars)
        case _:
            return await tau.measure(engine, folder, data, bars)


def _data_folder() -> Path:
    """LASTRO_DATA means the benchmarks' data here. It is taken away, so that no service of ours takes it for its own folder."""
    given = os.environ.pop("LASTRO_DATA", None)
    return Path(given) if given else Path(__file__).resolve().parents[1] / DEFAULT_DATA


class _Bars:
    """A bar for each thing that is done."""

    def __init__(self, bars: Progress, title: str) -> None:
        self._bars = bars
        self._title = title
        self._by_name: dict[str, TaskID] = {}

    def __call__(self, what: str, done: int, total: int) -> None:
        if what not in self._by_name:
            self._by_name[what] = self._bars.add_task(f"{self._title}: {what}", total=total)
        self._bars.update(self._by_name[what], completed=done, total=total)


def _table(figures: list[Figure]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, right in (("benchmark", False), ("engine", False), ("figure", False), ("value", True), ("target", False), ("", False)):
        table.add_column(name, justify="right" if right else "left")
    for figure in figures:
        verdict = "" if figure.met is None else "met" if figure.met else "MISSED"
        table.add_row(
            figure.benchmark, figure.engine, figure.name, f"{_number(figure.value)} {figure.unit}".rstrip(), figure.target, verdict
        )
    return table


def _number(value: float) -> str:
    if value == int(value) or abs(value) >= 1_000:  # noqa: PLR2004 (decimals say nothing there)
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"  # noqa: PLR2004 (as above)


if __name__ == "__main__":
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    application.command()(main)
    application()
