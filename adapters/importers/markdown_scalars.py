r"""How one scalar, key or short list is said in markdown, and read back.

A string stands as it is. It is quoted when it would read as another type, is empty or has space around it. A backslash escapes what would
be markup or end the place that it stands in; ``\n``, ``\r``, ``\t`` and ``\uXXXX`` are the characters that JSON writes so.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from pydantic import JsonValue

from adapters.importers.json_literals import NUMBER, UNSAFE, escaped, read_number, write_number
from graph.model import errors

EMPTY_OBJECT: Final = "(empty object)"
"""What ``{}`` is called where it stands alone, since alone it would be JSON."""

MAX_SHORT_ITEM: Final = 48
"""Characters of an item, on average, up to which a list is written in one line."""

MAX_SHORT_OBJECT: Final = 240
"""Characters up to which an object is written in one line."""

_NAMED: Final[dict[str, JsonValue]] = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}
FIELD: Final = re.compile(r'("(?:\\.|[^"\\])*+"|(?:\\.|:(?!\s|\Z)|[^\\:])*+):(?: (.*))?\Z', re.DOTALL)
"""A key, unescaped colon, and what follows it in the line, if anything."""

_WRITTEN: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_READ: Final = {"n": "\n", "r": "\r", "t": "\t"}
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_ORDERED: Final = re.compile(r"[0-9]{1,9}(?=[.)])")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-f]{4})|(.))", re.DOTALL)
_SCALAR_TYPES: Final = (str, int, float, type(None))


class Place(Enum):
    """Where a text stands, which decides what it must escape."""

    VALUE = ""
    """After ``key: ``."""
    ITEM = ":"
    """At the start of a list item or of the whole text."""
    CELL = "|"
    SHORT = ":;"
    """In a list or object in one line."""
    SHORT_CELL = "|:;"
    COLUMN = "|."
    """One key of a column's name."""


def is_scalar(value: JsonValue) -> bool:
    """Whether the value holds no other."""
    return isinstance(value, _SCALAR_TYPES)


def write_string(text: str, place: Place) -> str:
    """The string as it stands in that place."""
    other_type = text in _NAMED or text == EMPTY_OBJECT or NUMBER.fullmatch(text) is not None
    return _quoted(text, place) if other_type or _needs_quotes(text, place) else _guarded(_escape(text, place), place)


def write_key(key: str, place: Place) -> str:
    """The key of an object: like a string, but never another type."""
    is_counter = key == "#" and place is Place.COLUMN
    return _quoted(key, place) if is_counter or _needs_quotes(key, place) else _guarded(_escape(key, place), place)


def write_scalar(value: JsonValue, place: Place) -> str:
    """A scalar, an empty list or an empty object."""
    if isinstance(value, str):
        return write_string(value, place)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return write_number(value)
    if isinstance(value, list):
        return "[]"
    return "{}" if place is Place.VALUE else EMPTY_OBJECT


def write_short(value: JsonValue, place: Place) -> str | None:
    """``[a; b; c]`` or ``{key: a; other: b}`` for a list or object of short scalars, else None. With commas it could be JSON."""
    inner = Place.SHORT_CELL if "|" in place.value else Place.SHORT
    if isinstance(value, list) and value and all(is_scalar(item) for item in value):
        parts = [write_scalar(item, inner) for item in value]
        return f"[{'; '.join(parts)}]" if _are_short(parts) else None
    if isinstance(value, dict) and value and all(is_scalar(item) for item in value.values()):
        parts = [f"{write_key(key, inner)}: {write_scalar(item, inner)}" for key, item in value.items()]
        is_json = len(parts) == 1 and parts[0].startswith('"')
        return f"{{{'; '.join(parts)}}}" if _are_short(parts) and sum(map(len, parts)) <= MAX_SHORT_OBJECT and not is_json else None
    return None


def _are_short(parts: list[str]) -> bool:
    return sum(map(len, parts)) <= MAX_SHORT_ITEM * len(parts)


def read_scalar(text: str) -> JsonValue:
    """What a text written by this module stands for: a scalar, a list or object in one line, or an empty container.

    Raises InvalidInput for an object in one line that it did not write.
    """
    if text in _NAMED:
        return _NAMED[text]
    if text in {"{}", EMPTY_OBJECT}:
        return {}
    if text.startswith("[") and text.endswith("]"):
        return _read_short_list(text[1:-1])
    if text.startswith("{") and text.endswith("}"):
        return _read_short_object(split(text[1:-1], ";"))
    if NUMBER.fullmatch(text):
        return read_number(text)
    return read_string(text)


def read_string(text: str) -> str:
    """A key or string: without quotes and escapes."""
    quoted = len(text) > 1 and text.startswith('"') and text.endswith('"')
    return _ESCAPE.sub(_read_escape, text[1:-1] if quoted else text)


def split(text: str, mark: str) -> list[str]:
    """The parts between unescaped marks."""
    escaped_mark = re.escape(mark)
    return re.findall(rf"(?:\A|{escaped_mark})((?:\\.|[^\\{escaped_mark}])*+)", text, re.DOTALL)


def _read_short_list(inner: str) -> JsonValue:
    if inner.startswith("{") and inner.endswith("}"):
        return [_read_short_object(split(inner[1:-1], ";"))]
    return [read_scalar(part.removeprefix(" ")) for part in split(inner, ";")] if inner else []


def _read_short_object(parts: list[str]) -> JsonValue:
    fields = [field for field in (FIELD.match(part.removeprefix(" ")) for part in parts) if field is not None]
    found: dict[str, JsonValue] = {read_string(field[1]): read_scalar(field[2] or "") for field in fields}
    if len(found) < len(parts):
        raise errors.InvalidInput("An object in one line is not written as json_to_markdown writes.")
    return found


def _read_escape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _READ.get(found[2], found[2])


def _escape(text: str, place: Place) -> str:
    text = text.replace("\\", "\\\\")
    for character, written in _WRITTEN.items():
        text = text.replace(character, written)
    text = _TAG.sub(r"\\<", text)
    for mark in place.value:
        text = re.sub(r":(?=\s|\Z)", r"\\:", text) if mark == ":" else text.replace(mark, "\\" + mark)
    if text.isascii() and text.isprintable():
        return text
    return UNSAFE.sub(lambda found: escaped(found[0]), text)


def _needs_quotes(text: str, place: Place) -> bool:
    # Renderers take the last backslash of a cell for the pipe's, though it is escaped itself.
    return not text or text != text.strip() or ("|" in place.value and text.endswith("\\"))


def _quoted(text: str, place: Place) -> str:
    return '"' + _escape(text, place).replace('"', '\\"') + '"'


def _guarded(text: str, place: Place) -> str:
    """The text with its beginning escaped when that would mean something."""
    if text[0] in '"[{' or (place is Place.ITEM and text[0] in "-+*#>|=~_`"):
        return "\\" + text
    ordered = _ORDERED.match(text) if place is Place.ITEM else None
    return f"{ordered[0]}\\{text[ordered.end() :]}" if ordered else text
