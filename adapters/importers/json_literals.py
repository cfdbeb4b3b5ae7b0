"""JSON read and written without changing a number or losing a value.

``json`` alone would turn ``1.10`` into ``1.1``, ``1e400`` into ``Infinity`` and keep only the last of two equal keys.
"""

from __future__ import annotations

import json
import math
import re
from typing import Self, cast

from pydantic import JsonValue

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
"""A number as JSON writes it."""

UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
"""Characters that are written as an escape: controls, line separators, the byte order mark and lone surrogates."""

_MAX_INT_DIGITS = 4_000
_CONSTANTS: dict[str, float] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class NumberAsWritten(float):
    """A number whose own text says more than Python's: ``1.10``, ``1e400``, ``-0``, an integer of thousands of digits."""

    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number


class DuplicateKey(ValueError):
    """An object has the same key twice, so that no dict can hold it."""


def read_number(text: str) -> JsonValue:
    """The number that a JSON literal stands for; one that Python would write otherwise keeps its text."""
    if text.lstrip("-").isdigit():
        return int(text) if len(text) <= _MAX_INT_DIGITS and str(int(text)) == text else NumberAsWritten(text)
    return float(text) if repr(float(text)) == text else NumberAsWritten(text)


def write_number(number: float) -> str:
    """The number's own text, or JSON's; NaN and the infinities as Python's json writes them."""
    if isinstance(number, NumberAsWritten):
        return number.text
    if isinstance(number, float) and not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return repr(number)


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DuplicateKey
    return found


_decoder = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=read_number, parse_float=read_number, parse_constant=_CONSTANTS.__getitem__, strict=False
)


def decode(text: str) -> JsonValue:
    """One JSON document. Raises ValueError (DuplicateKey among them) or RecursionError (nested about 1,000 deep)."""
    return cast("JsonValue", _decoder.decode(text))


def depth(value: JsonValue) -> int:
    """How many containers are in one another: 0 for a scalar, 1 for ``[]``."""
    deepest, pending = 0, [(value, 1)]
    while pending:
        part, level = pending.pop()
        if isinstance(part, dict | list):
            deepest = max(deepest, level)
            pending.extend((inner, level + 1) for inner in (part.values() if isinstance(part, dict) else part))
    return deepest


def escaped(character: str) -> str:
    r"""``\uXXXX`` of one character of the basic plane."""
    return f"\\u{ord(character):04x}"


def encode(value: JsonValue) -> str:
    """Compact JSON in one line, numbers as written, of any depth, without a character that a text may not hold."""
    out: list[str] = []
    pending: list[tuple[bool, JsonValue]] = [(False, value)]
    while pending:
        is_text, part = pending.pop()
        if is_text:
            out.append(str(part))
        elif isinstance(part, dict):
            inner: list[tuple[bool, JsonValue]] = [(True, "{")]
            for position, (key, item) in enumerate(part.items()):
                inner += [(True, f"{',' if position else ''}{_string(key)}:"), (False, item)]
            pending.extend(reversed([*inner, (True, "}")]))
        elif isinstance(part, list):
            inner = [(True, "[")]
            for position, item in enumerate(part):
                inner += [(True, ","), (False, item)] if position else [(False, item)]
            pending.extend(reversed([*inner, (True, "]")]))
        else:
            out.append(_scalar(part))
    return "".join(out)


def _scalar(value: str | bool | float | None) -> str:
    if isinstance(value, str):
        return _string(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return write_number(value)


def _string(text: str) -> str:
    return UNSAFE.sub(lambda found: escaped(found[0]), json.dumps(text, ensure_ascii=False))
