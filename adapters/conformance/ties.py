"""Native tool calls and their results in a payload, of whatever vendor: whether each result answers a call as the vendors demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

TURNS = ("messages", "input", "contents")
"""Keys of a request that hold its turns."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A call or a result: the turn it stands in, its place in that turn, and the id that ties them (Gemini's name where there is none)."""

    is_call: bool
    id: str
    turn: int
    part: int


def ties_of(payload: Mapping[str, Any]) -> list[Tie]:
    """All native calls and results of a payload, in its order."""
    turns: Sequence[Any] = next((cast("Sequence[Any]", payload[key]) for key in TURNS if isinstance(payload.get(key), list)), ())
    return [tie for number, turn in enumerate(turns) for tie in _ties(turn, number)]


def tied(payload: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the native pairs of a payload: results without a call before them, calls without a result, turns in between."""
    ties = ties_of(payload)
    spoken = {tie.turn for tie in ties}
    open_calls: dict[str, Tie] = {}
    answered: set[str] = set()
    for tie in ties:
        if tie.is_call:
            if tie.id in open_calls:
                yield "two calls that are not answered have the same id"
            open_calls[tie.id] = tie
            continue
        call = open_calls.pop(tie.id, None)
        if call is None:
            yield (
                "a result answers a call that was answered before"
                if tie.id in answered
                else "a result answers no call that stands before it"
            )
            continue
        answered.add(tie.id)
        if any(turn not in spoken for turn in range(call.turn + 1, tie.turn)):
            yield "a turn of another kind stands between a call and its result"
        before = [other for other in ties if other.turn == tie.turn and not other.is_call and other.part < tie.part]
        if tie.turn != call.turn and len(before) != tie.part:
            yield "something else stands before a result in its turn"
    if open_calls:
        yield f"{len(open_calls)} calls have no result"


def _ties(turn: Any, number: int) -> Iterator[Tie]:
    if not isinstance(turn, Mapping):
        return
    told = cast("Mapping[str, Any]", turn)
    if told.get("role") == "tool":
        yield Tie(is_call=False, id=str(told.get("tool_call_id")), turn=number, part=0)
    for call in cast("Sequence[Any]", told.get("tool_calls") or ()):
        yield Tie(is_call=True, id=str(call.get("id")), turn=number, part=0)
    if told.get("type") in {"function_call", "function_call_output"}:
        yield Tie(is_call=told["type"] == "function_call", id=str(told.get("call_id")), turn=number, part=0)
    parts = told.get("content") if isinstance(told.get("content"), list) else told.get("parts")
    for place, part in enumerate(cast("Sequence[Any]", parts or ())):
        if isinstance(part, Mapping):
            yield from _of_part(cast("Mapping[str, Any]", part), number, place)


def _of_part(part: Mapping[str, Any], turn: int, place: int) -> Iterator[Tie]:
    if part.get("type") == "tool_use":
        yield Tie(is_call=True, id=str(part.get("id")), turn=turn, part=place)
    elif part.get("type") == "tool_result":
        yield Tie(is_call=False, id=str(part.get("tool_use_id")), turn=turn, part=place)
    for key, is_call in (("functionCall", True), ("function_call", True), ("functionResponse", False), ("function_response", False)):
        told = part.get(key)
        if isinstance(told, Mapping):
            named = cast("Mapping[str, Any]", told)
            yield Tie(is_call=is_call, id=str(named.get("id") or named.get("name")), turn=turn, part=place)
