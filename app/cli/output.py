"""How commands speak: tables that fit the terminal, JSON for programs, errors that help."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import orjson
from pydantic import BaseModel
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from graph.model.errors import LastroError

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNAVAILABLE = 3


def print_json(value: object) -> None:
    """One JSON document on standard output, indented."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    sys.stdout.write(orjson.dumps(plain, option=orjson.OPT_INDENT_2).decode() + "\n")


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None, right: Sequence[int] = ()) -> None:
    """Rows as a table; the last column takes what room is left and is cut, never wrapped."""
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        last = place == len(columns) - 1
        shown.add_column(
            column,
            justify="right" if place in right else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if last else None,
            # One long id must not push the other columns out.
            max_width=None if last else max(out.width * 2 // 5, 12),
        )
    for row in rows:
        # Text, not markup: what a unit says must not be able to style the terminal, nor move its cursor.
        shown.add_row(*(Text(printable(str(cell))) for cell in row))
    out.print(shown)


def printable(text: str) -> str:
    """One line without control characters, so that stored text cannot drive the terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def progress() -> Progress:
    """A progress bar on standard error, so that standard output stays clean for --json."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    )


def print_error(error: LastroError, *, as_json: bool) -> None:
    """What went wrong, where, and what to do."""
    where = error.where
    if as_json:
        told: dict[str, object] = {"code": error.code, "title": error.message, "hint": error.hint}
        if where is not None:
            told["where"] = {
                name: value for name, value in (("index", where.index), ("id", where.id), ("field", where.field)) if value is not None
            }
        print_json({"error": told})
        return
    err.print(Text.assemble(("error ", "bold red"), (f"[{error.code}] ", "red"), printable(error.message)))
    if where is not None:
        parts = [
            f"item {where.index}" if where.index is not None else "",
            f"id {where.id}" if where.id is not None else "",
            f"field {where.field}" if where.field is not None else "",
        ]
        err.print(Text("  at " + printable(", ".join(filter(None, parts))), style="dim"))
    err.print(Text(f"  {error.hint}"))


def count(tokens: int) -> str:
    """A number of tokens for people."""
    return f"{tokens:,}".replace(",", " ")
