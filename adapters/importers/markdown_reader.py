"""The inverse of ``json_to_markdown``: the value that a text written by it holds."""

from __future__ import annotations

import re
from typing import Final

from pydantic import JsonValue

from adapters.importers.json_literals import decode
from adapters.importers.markdown_scalars import FIELD, read_scalar, read_string, split
from adapters.importers.markdown_writer import FENCE, MAX_DEPTH
from graph.model import errors

_RULE: Final = re.compile(r"(?:\|-)+\||-(?:\|-)+")


def markdown_to_json(text: str) -> JsonValue:
    """The JSON value of a text that ``json_to_markdown`` wrote. Raises InvalidInput, with the line, for another text."""
    if text.startswith(FENCE) and text.endswith("\n```"):
        try:
            return decode(text.removeprefix(FENCE).removesuffix("\n```"))
        except (ValueError, RecursionError):
            raise _refused(0) from None
    lines = text.split("\n")
    if lines[0].startswith(("- ", "|")) or _has_rule(lines, 1, 0):
        return _Reader(lines).whole()
    if len(lines) > 1:
        raise _refused(1)
    return read_scalar(text)


def _has_rule(lines: list[str], at: int, indent: int) -> bool:
    """Whether that line is what stands below the names of a table."""
    return at < len(lines) and not lines[at][:indent].strip() and _RULE.fullmatch(lines[at], indent) is not None


def _refused(line: int) -> errors.LastroError:
    return errors.InvalidInput("The markdown is not written as json_to_markdown writes.").at(index=line)


class _Reader:
    """Reads the lines of one text, the block at ``at`` being ``indent`` spaces deep."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def whole(self) -> JsonValue:
        value = self.block(0)
        if self.at < len(self.lines):
            raise _refused(self.at)
        return value

    def block(self, indent: int) -> JsonValue:
        """A table or a list at this depth."""
        if indent > 2 * MAX_DEPTH + 2 or self.at >= len(self.lines) or self.lines[self.at][:indent].strip():
            raise _refused(self.at)
        if _has_rule(self.lines, self.at + 1, indent):
            return self.table(indent)
        fields: dict[str, JsonValue] = {}
        items: list[JsonValue] = []
        while self.at < len(self.lines) and self.lines[self.at].startswith(" " * indent + "- "):
            line = self.lines[self.at][indent + 2 :]
            nested = line.startswith("- ") or _has_rule(self.lines, self.at + 1, indent + 2)
            field = None if nested or line.startswith(("[", "{")) else FIELD.match(line)
            if field is not None:
                key = read_string(field[1])
                if key in fields:
                    raise _refused(self.at)
                self.at += 1
                fields[key] = read_scalar(field[2]) if field[2] is not None else self.block(indent + 2)
            elif nested:
                self.lines[self.at] = " " * (indent + 2) + line
                items.append(self.block(indent + 2))
            else:
                self.at += 1
                items.append(read_scalar(line))
        if bool(fields) == bool(items):
            raise _refused(self.at)
        return fields or items

    def table(self, indent: int) -> JsonValue:
        names = self.cells(indent)
        self.at += 1  # past the rule
        columns = self.columns(names)
        rows: list[tuple[str, dict[str, JsonValue]]] = []
        while self.at < len(self.lines) and self.lines[self.at].startswith(" " * indent):
            cells = self.cells(indent)
            if len(cells) != len(names):
                raise _refused(self.at - 1)
            rows.append((cells[0], self.row(names, columns, cells)))
        if names[0] == "":
            keyed: dict[str, JsonValue] = {read_string(first): row for first, row in rows}
            if len(keyed) < len(rows):
                raise _refused(self.at)
            return keyed
        if names[0] != "#":
            return [row for _, row in rows]
        groups: dict[str, list[JsonValue]] = {}
        for first, row in rows:
            groups.setdefault(first, []).append(row)
        return list(groups.values())

    def columns(self, names: list[str]) -> list[list[str]]:
        """The keys of each column; what begins with a dot has those of the column before, but for the last."""
        columns: list[list[str]] = []
        for name in names:
            first, *rest = split(name, ".")
            outer = columns[-1][:-1] if rest and not first and columns else [read_string(first)]
            columns.append([*outer, *map(read_string, rest)])
        return columns

    def row(self, names: list[str], columns: list[list[str]], cells: list[str]) -> dict[str, JsonValue]:
        row: dict[str, JsonValue] = {}
        for position, cell in enumerate(cells):
            if cell == "" or (position == 0 and names[0] in {"", "#"}):
                continue
            *path, last = columns[position]
            into = row
            for key in path:
                inner = into.setdefault(key, {})
                if not isinstance(inner, dict):
                    raise _refused(self.at)
                into = inner
            into[last] = read_scalar(cell)
        return row

    def cells(self, indent: int) -> list[str]:
        if self.at >= len(self.lines):
            raise _refused(self.at)
        line = self.lines[self.at][indent:]
        self.at += 1
        if not line.startswith("|"):
            return split(line, "|")
        if not line.endswith("|") or len(line) == 1:
            raise _refused(self.at - 1)
        return split(line[1:-1], "|")
