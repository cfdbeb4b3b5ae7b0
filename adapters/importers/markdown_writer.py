"""JSON as markdown that holds every value and costs fewer tokens.

An object is a list of ``- key: value``; what is in it stands two spaces deeper. A list of like objects is a table, the keys of objects inside
them joined by a dot (``price.economy``, and ``.business`` beside it for ``price.business``); an empty cell is a key that this object lacks. In
an object of like objects the first column, without a name, has the keys; in a list of such lists the first column, ``#``, counts the lists. A
table has no pipes around its lines where these can be told without, which costs a tenth fewer of Gemma's tokens. A list of short values stands in
one line: ``[a; b; c]``. Other lists are markdown lists. Deeper than ``MAX_DEPTH`` the whole is a fenced block of JSON.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from adapters.importers.json_literals import depth, encode
from adapters.importers.markdown_scalars import Place, is_scalar, write_key, write_scalar, write_short

MAX_DEPTH: Final = 40
"""Containers in one another that are still written as lists; markdown can be checked to about twice that."""

FENCE: Final = "```json\n"
_MAX_COLUMN_DEPTH: Final = 4
_MAX_COLUMNS: Final = 64

_OTHER_BLOCK: Final = re.compile(r"[-+*>=~_`|]|#{1,6}[\s#]|[0-9]{1,9}[.)]\s")
"""What a row without pipes around it must not begin with: marks of lists, headings, quotations, rules and fences."""

Row = dict[tuple[str, ...], str]


def json_to_markdown(value: JsonValue) -> str:
    """The value as markdown. ``markdown_to_json`` is its inverse.

    The result passes ``check_content`` unless a string in it is over the limit of size or looks like base64 (see ``tool_text``).
    """
    if is_scalar(value) or not value:
        return write_scalar(value, Place.ITEM)
    if depth(value) > MAX_DEPTH:
        return f"{FENCE}{encode(value)}\n```"
    if isinstance(value, list) and not any(isinstance(item, str) for item in value):
        short = write_short(value, Place.ITEM)
        if short is not None and len(value) > 1:
            return short
    return "\n".join(_lines(value))


def _lines(value: JsonValue) -> list[str]:
    """The lines of a container that is not empty."""
    if isinstance(value, dict):
        return _shorter(_keyed_table(value), [line for key, item in value.items() for line in _field(key, item)])
    assert isinstance(value, list)
    return _shorter(_table(value), [line for item in value for line in _item(item)])


def _field(key: str, value: JsonValue) -> list[str]:
    name = write_key(key, Place.ITEM)
    if is_scalar(value) or not value:
        return [f"- {name}: {write_scalar(value, Place.VALUE)}"]
    only = value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) else None
    short = write_short(value if only is None else only, Place.VALUE)
    if short is not None:
        return [f"- {name}: {short}" if only is None else f"- {name}: [{short}]"]
    return [f"- {name}:", *(f"  {line}" for line in _lines(value))]


def _item(value: JsonValue) -> list[str]:
    if is_scalar(value) or not value:
        return [f"- {write_scalar(value, Place.ITEM)}"]
    short = write_short(value, Place.ITEM)
    first, *rest = [short] if short is not None else _lines(value)
    return [f"- {first}", *(f"  {line}" for line in rest)]


def _shorter(table: list[str] | None, lines: list[str]) -> list[str]:
    if table is None or sum(map(len, table)) + len(table) > sum(map(len, lines)) + len(lines):
        return lines
    return table


def _table(items: Sequence[JsonValue]) -> list[str] | None:
    """A table of a list of like objects, or of a list of such lists."""
    if all(isinstance(item, list) and item for item in items):
        groups = [item for item in items if isinstance(item, list)]
        rows = [_row(inner) for group in groups for inner in group]
        numbers = [str(number) for number, group in enumerate(groups, 1) for _ in group]
        return _drawn(rows, first=("#", numbers))
    return _drawn([_row(item) for item in items])


def _keyed_table(value: dict[str, JsonValue]) -> list[str] | None:
    if len(value) == 1:
        return None
    return _drawn([_row(item) for item in value.values()], first=("", [write_key(key, Place.CELL) for key in value]))


def _drawn(rows: Sequence[Row | None], first: tuple[str, list[str]] | None = None) -> list[str] | None:
    """The lines of a table, with a column before the others; None when the objects are not alike enough."""
    known = [row for row in rows if row is not None]
    if len(known) < len(rows):
        return None
    columns = list(dict.fromkeys(column for row in known for column in row))
    if len(columns) > _MAX_COLUMNS or 2 * sum(map(len, known)) < len(columns) * len(known):
        return None
    names = _names(columns)
    body = [[row.get(column, "") for column in columns] for row in known]
    if first is not None:
        names.insert(0, first[0])
        body = [[cell, *cells] for cell, cells in zip(first[1], body, strict=True)]
    lines = [names, ["-"] * len(names), *body]
    # All lines alike: pipes that stand in some lines alone would look like more cells.
    alone = _stand_alone([names, *body])
    return ["|".join(cells) if alone else f"|{'|'.join(cells)}|" for cells in lines]


def _names(columns: Sequence[tuple[str, ...]]) -> list[str]:
    """The keys of each column joined by dots; where only the last is another than in the column before, that alone, after a dot."""
    names: list[str] = []
    before: tuple[str, ...] = ()
    for column in columns:
        *outer, last = (write_key(key, Place.COLUMN) for key in column)
        names.append(f".{last}" if outer and column[:-1] == before[:-1] else ".".join([*outer, last]))
        before = column
    return names


def _stand_alone(rows: Sequence[Sequence[str]]) -> bool:
    """Whether lines without pipes around them are still read as these rows."""
    return all(len(cells) > 1 and cells[0] and cells[-1] and not _OTHER_BLOCK.match("|".join(cells)) for cells in rows)


def _row(value: JsonValue) -> Row | None:
    """The cells of an object by the path of their keys; None when something in it does not fit into a cell."""
    if not isinstance(value, dict) or not value:
        return None
    row: Row = {}
    pending: list[tuple[tuple[str, ...], JsonValue]] = [((), value)]
    while pending:
        path, part = pending.pop()
        if isinstance(part, dict) and part:
            if len(path) >= _MAX_COLUMN_DEPTH:
                return None
            pending.extend(((*path, key), inner) for key, inner in reversed(part.items()))
            continue
        cell = write_short(part, Place.CELL) if isinstance(part, list) and part else write_scalar(part, Place.CELL)
        if cell is None:
            return None
        row[path] = cell
    return row
