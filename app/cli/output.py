"""How commands speak: tables that fit the terminal, JSON for programs, errors that help."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import orjson
from pydantic import BaseModel
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from graph.model.errors import LastroError

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

GAP = 2
"""Spaces between two columns."""
MOST_SHOWN = 2_000
"""Characters of a cell that is wrapped."""

EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNAVAILABLE = 3


def print_json(value: object) -> None:
    """One JSON document on standard output, indented."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    sys.stdout.write(orjson.dumps(plain, option=orjson.OPT_INDENT_2).decode() + "\n")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    title: str | None = None,
    right: Sequence[int] = (),
    wrap_last: bool = False,
) -> None:
    """Rows as a table that fits the terminal; what is too long is cut, but for a last column that is wrapped."""
    # Text, not markup: what a unit says must not be able to style the terminal, nor move its cursor. Nothing that is shown needs more of it.
    cells = [[printable(str(cell)[: MOST_SHOWN if wrap_last else out.width + 1]) for cell in row] for row in rows]
    wanted = [max(cell_len(text) for text in texts) for texts in zip(columns, *cells, strict=True)]
    widths = _fitting(wanted, out.width - GAP * (len(columns) - 1))
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for place, (column, width) in enumerate(zip(columns, widths, strict=True)):
        wrapped = wrap_last and place == len(columns) - 1
        shown.add_column(
            column,
            justify="right" if place in right else "left",
            no_wrap=not wrapped,
            overflow="fold" if wrapped else "ellipsis",
            width=width,
        )
    for row in cells:
        shown.add_row(*(Text(text) for text in row))
    out.print(shown)
    if any(width < want for width, want in zip(widths[:-1], wanted[:-1], strict=True)):
        err.print("What ends in … is cut; --json has all of it.")


def _fitting(wanted: Sequence[int], room: int) -> list[int]:
    """Widths of columns that take at most ``room`` together: the widest give way, so that one long id or text pushes no other column out."""
    widths = list(wanted)
    while sum(widths) > room and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


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
        disable=not err.is_terminal,
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


def number_of(number: int, one: str, many: str | None = None) -> str:
    """A number and what it is of: ``1 unit``, ``2 units``; ``many`` where it is not ``one`` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"
