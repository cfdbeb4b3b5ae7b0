"""What is read by pages, written out whole as CSV or as lines of JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel

Row = TypeVar("Row", bound=BaseModel)
Row_co = TypeVar("Row_co", bound=BaseModel, covariant=True)

_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the beginning of a formula, in either width."""


class Page(Protocol[Row_co]):
    """Some rows, and the cursor of the page after them if there may be one."""

    @property
    def rows(self) -> Sequence[Row_co]: ...
    @property
    def next(self) -> str | None: ...


async def pages(read: Callable[[str | None], Awaitable[Page[Row]]]) -> AsyncIterator[Sequence[Row]]:
    """The rows of page after page, as ``read`` gives them for a cursor; ``None`` is the first page's."""
    cursor: str | None = None
    while True:
        page = await read(cursor)
        yield page.rows
        cursor = page.next
        if cursor is None:
            return


async def as_csv(of: AsyncIterator[Sequence[Row]], columns: Sequence[str], names: Collection[str]) -> AsyncIterator[str]:
    """RFC 4180 with one header, also over no rows; ``names`` are the columns whose text callers chose: a formula gets an apostrophe in front."""
    yield _csv([columns])
    async for rows in of:
        yield _csv([_cells(row, columns, names) for row in rows])


async def as_lines(of: AsyncIterator[Sequence[Row]]) -> AsyncIterator[str]:
    """A line of JSON for each row."""
    async for rows in of:
        yield "".join(f"{row.model_dump_json()}\n" for row in rows)


def _cells(row: BaseModel, columns: Sequence[str], names: Collection[str]) -> list[object]:
    told = row.model_dump(mode="json")
    return ["" if told[name] is None else _safe(told[name]) if name in names else told[name] for name in columns]


def _safe(name: str) -> str:
    return f"'{name}" if name.startswith(_FORMULAS) else name


def _csv(rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()
