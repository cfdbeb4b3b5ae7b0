"""Reading a payload back without knowing whose it is: which texts stand in it, in the order a model reads them, and with which authority.

All vendors' requests share enough for that: a list of turns with a role each, and instructions beside it or in a turn of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

INSTRUCTIONS = frozenset({"system", "instructions", "system_instruction", "systemInstruction", "developer"})
"""Keys of a request whose value a model takes orders from."""
DEFINITIONS = frozenset({"tools", "functions", "tool_config", "toolConfig"})
"""Keys whose value describes tools, which a model trusts as it does instructions."""
AUTHORITY_ROLES = frozenset({"system", "developer"})
_WRAPPERS = frozenset({"config", "extra_body", "generationConfig", "generation_config"})
_NAMES = frozenset(
    {"type", "role", "model", "id", "call_id", "tool_call_id", "tool_use_id", "media_type", "mime_type", "mimeType", "status"}
)
"""Keys whose value is a name of the vendor's form and not a text."""


@dataclass(frozen=True, slots=True)
class Place:
    """One text of a payload. ``turn`` is its place in the list of turns, -1 outside of it."""

    path: str
    role: str
    authority: bool
    turn: int
    text: str
    is_name: bool


def places(payload: Mapping[str, Any]) -> list[Place]:
    """All texts of a payload: definitions and instructions first, as every vendor puts them, then the turns in their order."""
    first: list[Place] = []
    rest: list[Place] = []
    top: list[tuple[str, str, object]] = [(key, key, value) for key, value in payload.items()]
    while top:
        key, path, value = top.pop(0)
        if key in _WRAPPERS and isinstance(value, Mapping):
            top = [(str(inner), f"{path}.{inner}", each) for inner, each in cast("Mapping[str, object]", value).items()] + top
            continue
        authority = key in INSTRUCTIONS or key in DEFINITIONS
        found = _texts(path, key, value, authority=authority)
        (first if authority else rest).extend(found)
    return first + rest


def _texts(path: str, key: str, value: object, *, authority: bool) -> list[Place]:
    """The texts under one key of the request, in order, without recursion: a payload may be nested as deeply as arguments are."""
    found: list[Place] = []
    # Each with its path, its key, the role and the authority that it stands under, and its turn.
    pending: list[tuple[str, str, object, str, bool, int]] = [(path, key, value, "", authority, -1)]
    while pending:
        at, name, part, role, commands, turn = pending.pop()
        if isinstance(part, str):
            found.append(Place(at, role, commands, turn, part, name in _NAMES))
        elif isinstance(part, Mapping):
            inner = cast("Mapping[str, object]", part)
            said = inner.get("role")
            if isinstance(said, str):
                role, commands = said, commands or said in AUTHORITY_ROLES
            pending.extend((f"{at}.{each}", str(each), inner[each], role, commands, turn) for each in reversed(list(inner)))
        elif isinstance(part, Sequence) and not isinstance(part, bytes | bytearray):
            listed = cast("Sequence[object]", part)
            pending.extend(
                (f"{at}[{n}]", name, each, role, commands, n if turn < 0 and at == path else turn)
                for n, each in reversed(list(enumerate(listed)))
            )
    return found
