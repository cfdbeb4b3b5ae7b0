"""Names and ids of tool calls as a vendor takes them: what it refuses is changed in the same way each time, and can be told back."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

_MARK_DIGITS = 8
_ID_DIGITS = 24
_KEPT = re.compile(r"[^a-zA-Z0-9_-]+")
_ID = re.compile(r"[a-zA-Z0-9_-]+")


def native_name(name: str, pattern: str, most: int) -> str:
    """A tool's name as a vendor takes it: as it is when all of it matches ``pattern`` within ``most`` characters.

    Another becomes its letters, digits, ``_`` and ``-``, and a mark of eight hexadecimal digits of its SHA-256, so that two names stay two and
    the same name is the same everywhere. Whoever keeps the pair of both can tell it back.
    """
    if len(name) <= most and _compiled(pattern).fullmatch(name) is not None:
        return name
    plain = _KEPT.sub("_", name[: 2 * most]).strip("_-")
    if not plain[:1].isalpha():
        plain = f"tool_{plain}".rstrip("_")
    return f"{plain[: most - _MARK_DIGITS - 1]}_{_digits(name, _MARK_DIGITS)}"


def native_id(call_id: str | None, unit_id: str, most: int, taken: set[str]) -> str:
    """The id of a call: its recorded one where every vendor takes it and no call before has it, else one made from the unit's id.

    The id is added to ``taken``.
    """
    chosen = call_id if call_id is not None and len(call_id) <= most and _ID.fullmatch(call_id) is not None else None
    number = 0
    while chosen is None or chosen in taken:
        chosen = f"call_{_digits(f'{number}:{unit_id}', _ID_DIGITS)}"
        number += 1
    taken.add(chosen)
    return chosen


def _digits(text: str, count: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:count]


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)
