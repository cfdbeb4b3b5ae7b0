"""Which format a file has, from the beginning of it: units, or transcripts, whose records show each its own form."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from adapters.importers.json_literals import decode
from adapters.importers.records import is_message, record_of
from adapters.importers.streams import stream_id
from graph.model import errors

UNITS: Final = "units"
AUTO: Final = "auto"
FORMATS: Final = {
    UNITS: "NDJSON, one context unit a line",
    "openai-chat": "OpenAI Chat Completions, or a JSON document or JSON lines of such messages",
    "openai-responses": "OpenAI Responses",
    "anthropic": "Anthropic Messages",
    "gemini": "Gemini generateContent",
    "deepseek": "DeepSeek chat",
}
"""Formats that can be imported, with what they are. Transcripts may be messages, requests, answers, exchanges or streams."""

_HEAD_BYTES: Final = 2**20
_UNIT_FIELDS: Final = frozenset({"kind", "metadata", "relations"})
_RUN_FIELDS: Final = (
    "messages", "traj", "trajectory", "request", "response", "runs", "contents", "input", "body", "candidates", "choices", "output"
)  # fmt: skip
_RUN_KEY: Final = re.compile(rf'"(?:{"|".join((*_RUN_FIELDS, "role"))})"\s*:')
_UNIT_KEY: Final = re.compile(r'"(?:kind|metadata|relations)"\s*:')
_GEMINI_KEY: Final = re.compile(r'"(?:contents|candidates)"\s*:\s*\[')
_EVENT: Final = re.compile(r"(?:event|data|id|retry)?:")


def check_format(name: str) -> None:
    """Nothing for a format that can be imported. Raises ImportRefused."""
    if name not in FORMATS:
        raise errors.ImportRefused("There is no such format.", hint=f"Formats: {AUTO}, {', '.join(FORMATS)}.")


def detect(path: Path) -> str:
    """``units``, or the form of the first run. Raises ImportRefused when the beginning of the file is of no format.

    What cannot be told from the first MB, a document over many lines or a very long line, is taken for ``openai-chat`` when it looks like a
    transcript; each run shows its form when it is read.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    text = head.decode("utf-8-sig", errors="ignore").lstrip()
    if _EVENT.match(text):
        return _of_events(text)
    if text[:1] not in {"{", "["}:
        raise _refused()
    for piece in (text.split("\n", 1)[0], text if len(head) < _HEAD_BYTES else ""):
        try:
            found = decode(piece)
        except (ValueError, RecursionError):
            continue  # a document over several lines, or a line longer than what was read
        return _of_document(found)
    run, unit = _RUN_KEY.search(text), _UNIT_KEY.search(text)
    if run is not None and (text[0] == "[" or unit is None or run.start() < unit.start()):
        return "gemini" if _GEMINI_KEY.search(text) else "openai-chat"
    if unit is not None and text[0] == "{":
        return UNITS
    raise _refused()


def _of_document(found: JsonValue) -> str:
    first = found
    for _ in range(2):  # a list of runs, or the runs of one task
        if isinstance(first, dict) and isinstance(first.get("runs"), list):
            first = first["runs"]
            if not first:
                return "openai-chat"
        if isinstance(first, list) and first and not all(map(is_message, first)) and stream_id(first[0]) is None:
            first = first[0]
    record = record_of([first] if stream_id(first) is not None else first)
    if record is not None:
        return record.form
    if isinstance(found, dict) and found.keys() & _UNIT_FIELDS:
        return UNITS
    raise _refused()


def _of_events(text: str) -> str:
    for line in text.splitlines():
        if line.startswith("data:"):
            try:
                event = decode(line.removeprefix("data:"))
            except (ValueError, RecursionError):
                continue
            record = record_of([event])
            if record is not None:
                return record.form
    raise _refused()


def _refused() -> errors.LastroError:
    return errors.ImportRefused(
        "The file is of no format that can be imported.",
        hint="It must be one of: " + "; ".join(f"{name} ({what})" for name, what in FORMATS.items()) + ". Name it with --format.",
    )
