"""The command line of the benchmarks."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from adapters.embedders.base import is_known
from benchmarks import (
    context,
    exchanges,
    faquad,
    hotpot,
    locomo,
    memory,
    prefix,
    recall_lag,
    rendering,
    search_latency,
    small_tenant,
    tau,
    token_counts,
    updates,
    write,
)
from benchmarks.engines import BenchEngine
from benchmarks.measuring import Figure, OnProgress, load_average
from benchmarks.quality import DEFAULT_EMBEDDERS

BOTH = (BenchEngine.EMBEDDED, BenchEngine.NEO4J_LTS)
DEFAULT_DATA = Path("../shared/data")


class What(StrEnum):
    """Which benchmark."""

    WRITE = "write"
    CONTEXT = "context"
    MEMORY = "memory"
    TAU = "tau"
    PREFIX = "prefix"
    RENDERING = "rendering"
    LOCOMO = "locomo"
    HOTPOT = "hotpot"
    FAQUAD = "faquad"
    UPDATES = "updates"
    SEARCH = "search"
    SMALL_TENANT = "small-tenant"
    RECALL_LAG = "recall-lag"
    EXCHANGES = "exchanges"
    TOKEN_COUNTS = "token-counts"  # noqa: S105 (no password)
    ALL = "all"


NEEDED = {
    What.TAU: tau.FILE,
    What.PREFIX: tau.FILE,
    What.LOCOMO: locomo.FOLDER,
    What.HOTPOT: hotpot.FILE,
    What.FAQUAD: faquad.FILE,
    What.EXCHANGES: exchanges.FOLDER,
    What.TOKEN_COUNTS: token_counts.FOLDER,
}
"""Real data, below LASTRO_DATA."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says beside which benchmark and engine."""

    data: Path
    units: int | None
    heaps: list[int]
    embedders: list[str]
    sample: int | None


def main(
    what: Annotated[What, typer.Argument(help="Which one.")] = What.ALL,
    engine: Annotated[
        list[BenchEngine] | None, typer.Option(help="Only this engine; may be given more than once.", show_default=False)
    ] = None,
    units: Annotated[
        int | None,
        typer.Option(
            min=1_000,
            help="Units, instead of each benchmark's own number: write 10000, context, search and small-tenant 100000, memory 50000, "
            "recall-lag 20000. search with more than 100000 measures at both sizes.",
        ),
    ] = None,
    heap: Annotated[
        list[int] | None, typer.Option(help="memory: heap of the embedded engine in MiB; may be given more than once.", show_default=False)
    ] = None,
    embedder: Annotated[
        list[str] | None,
        typer.Option(
            help="locomo, hotpot, faquad, updates: bundled, none or another that LASTRO_EMBEDDER takes; may be given more than once. "
            "Without it bundled and none.",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="locomo: only so many conversations; hotpot, faquad: questions; updates: facts.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Measure Lastro: its speed beside the raw driver, and the quality of its answers. Real data is read from LASTRO_DATA, by default ../shared/data."""
    for name in embedder or []:
        if not is_known(name):
            raise typer.BadParameter(f"no embedder is called {name}", param_hint="--embedder")
    options = Options(_data_folder(), units, heap or [], embedder or list(DEFAULT_EMBEDDERS), sample)
    err = Console(stderr=True, highlight=False)
    wanted = [each for each in What if each is not What.ALL] if what is What.ALL else [what]
    figures: list[Figure] = []
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=err, transient=True
    ) as bars:
        for each in wanted:
            if (needed := NEEDED.get(each)) is not None and not (options.data / needed).exists():
                err.print(
                    f"{each} is left out: there is no {options.data / needed}. Set LASTRO_DATA to the folder that holds it.", markup=False
                )
                continue
            for on in engine or BOTH:
                if each is What.MEMORY and on is not BenchEngine.EMBEDDED:
                    continue
                if each in {What.EXCHANGES, What.TOKEN_COUNTS} and on is not (engine or BOTH)[0]:
                    continue  # it needs no engine
                with tempfile.TemporaryDirectory(prefix="lastro-bench-") as folder:
                    figures += asyncio.run(MEASURES[each](on, Path(folder), options, _Bars(bars, f"{each} on {on}")))
    if as_json:
        told = {"load_average": load_average(), "cores": os.cpu_count(), "figures": [asdict(figure) for figure in figures]}
        sys.stdout.write(orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        Console(highlight=False).print(_table(figures))


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


Measure = Callable[[BenchEngine, Path, Options, OnProgress], Coroutine[None, None, list[Figure]]]
MEASURES: dict[What, Measure] = {
    What.WRITE: lambda on, folder, told, bars: write.measure(on, folder, told.units or write.DEFAULT_UNITS, bars),
    What.CONTEXT: lambda on, folder, told, bars: context.measure(on, folder, told.units or context.DEFAULT_UNITS, bars),
    What.MEMORY: lambda _, folder, told, bars: memory.measure(folder, told.units or memory.DEFAULT_UNITS, told.heaps, bars),
    What.TAU: lambda on, folder, told, bars: tau.measure(on, folder, told.data, bars),
    What.RENDERING: lambda on, folder, _told, bars: rendering.measure(on, folder, bars),
    What.PREFIX: lambda on, folder, told, bars: prefix.measure(on, folder, told.data, bars),
    What.LOCOMO: lambda on, folder, told, bars: locomo.measure(on, folder, told.data, told.embedders, told.sample, bars),
    What.HOTPOT: lambda on, folder, told, bars: hotpot.measure(on, folder, told.data, told.embedders, told.sample, bars),
    What.FAQUAD: lambda on, folder, told, bars: faquad.measure(on, folder, told.data, told.embedders, told.sample, bars),
    What.UPDATES: lambda on, folder, told, bars: updates.measure(on, folder, told.embedders, told.sample, bars),
    What.SEARCH: lambda on, folder, told, bars: search_latency.measure(on, folder, told.units or search_latency.DEFAULT_UNITS, bars),
    What.SMALL_TENANT: lambda on, folder, told, bars: small_tenant.measure(on, folder, told.units or small_tenant.DEFAULT_UNITS, bars),
    What.RECALL_LAG: lambda on, folder, told, bars: recall_lag.measure(on, folder, told.units or recall_lag.DEFAULT_UNITS, bars),
    What.EXCHANGES: lambda _, folder, told, bars: exchanges.measure(told.data, bars),  # noqa: ARG005 - it keeps nothing
    What.TOKEN_COUNTS: lambda _, _folder, told, bars: token_counts.measure(told.data, bars),
}


if __name__ == "__main__":
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    application.command()(main)
    application()
