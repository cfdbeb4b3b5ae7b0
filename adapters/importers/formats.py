"""Which format a file has, from the first object in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from adapters.importers.json_literals import decode
from graph.model import errors

FORMATS: Final = {
    "units": "NDJSON, one context unit a line",
    "openai-chat": "OpenAI chat messages: a JSON document or JSON lines of runs, with tool calls",
}
"""Formats that can be imported, with what they are."""

_HEAD_BYTES: Final = 2**20
_UNIT_FIELDS: Final = frozenset({"kind", "metadata", "relations"})
_RUN_FIELDS: Final = frozenset({"messages", "traj", "trajectory", "request", "runs"})
_RUN_KEY: Final = re.compile(r'"(?:messages|traj|trajectory|request|runs|role)"\s*:')
_UNIT_KEY: Final = re.compile(r'"(?:kind|metadata|relations)"\s*:')


def detect(path: Path) -> str:
    """``units`` or ``openai-chat``. Raises ImportRefused when the beginning of the file is neither."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    text = head.decode("utf-8-sig", errors="ignore").lstrip()
    if text[:1] not in {"{", "["}:
        raise _refused()
    if text[0] == "{":
        try:
            first = decode(text.split("\n", 1)[0])
        except (ValueError, RecursionError):
            first = None  # a document over several lines, or a line longer than what was read
        if isinstance(first, dict):
            return _of_fields(frozenset(first))
    run, unit = _RUN_KEY.search(text), _UNIT_KEY.search(text)
    if run is not None and (text[0] == "[" or unit is None or run.start() < unit.start()):
        return "openai-chat"
    if unit is not None and text[0] == "{":
        return "units"
    raise _refused()


def _of_fields(fields: frozenset[str]) -> str:
    if fields & _RUN_FIELDS:
        return "openai-chat"
    if fields & _UNIT_FIELDS:
        return "units"
    raise _refused()


def _refused() -> errors.LastroError:
    return errors.ImportRefused(
        "The file is of no format that can be imported.",
        hint="It must be one of: " + "; ".join(f"{name} ({what})" for name, what in FORMATS.items()) + ". Name it with --format.",
    )
