"""NDJSON of context units: one unit a line, read one line at a time, resumable at any line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from graph.model import errors
from graph.model.base import parse
from graph.model.units import ContextUnit

MAX_LINE_BYTES: Final = 4 * 2**20
_BOM: Final = b"\xef\xbb\xbf"
_BLOCK: Final = 2**20


def read_units(path: Path, start_offset: int = 0) -> Iterator[tuple[int, int, ContextUnit]]:
    """Each unit from ``start_offset`` (bytes, the beginning of a line) on: the offset after its line, the line (from 1), the unit.

    Raises an error of the tree with the line as ``where.index``; ImportRefused for a line over 4 MB or an offset that begins no line.
    """
    with path.open("rb") as file:
        line = 0
        left = start_offset
        last = b"\n"
        while left > 0:
            block = file.read(min(left, _BLOCK))
            if not block:
                raise errors.ImportRefused("The file is shorter than what was imported of it before.")
            line += block.count(b"\n")
            left -= len(block)
            last = block[-1:]
        if last != b"\n" and file.read(1):
            raise errors.ImportRefused("The place to go on from is not the beginning of a line.")
        offset = start_offset
        while raw := file.readline(MAX_LINE_BYTES + 1):
            line += 1
            offset += len(raw)
            if len(raw) > MAX_LINE_BYTES:
                raise errors.ImportRefused("A line is over 4 MB.", hint="One line holds one unit.").at(index=line)
            text = raw.removeprefix(_BOM).strip() if line == 1 else raw.strip()
            if not text:
                continue
            try:
                unit = parse(ContextUnit, text)
            except errors.LastroError as failure:
                raise failure.at(index=line) from None
            yield offset, line, unit
