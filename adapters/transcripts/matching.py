"""Which call a result answers: by id, else by name, in the latest turn that has one unanswered, there the first."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

AnyCall = TypeVar("AnyCall")


@dataclass(slots=True, eq=False)
class _Pending(Generic[AnyCall]):
    call: AnyCall
    turn: int
    answered: bool = False


class Matching(Generic[AnyCall]):
    """The calls so far. Adding one and finding one take the same time however many there are."""

    def __init__(self) -> None:
        self._stacks: dict[Hashable, list[tuple[int, deque[_Pending[AnyCall]]]]] = {}
        self._last: dict[str, _Pending[AnyCall]] = {}

    def add(self, call: AnyCall, *, name: str, call_id: str | None, turn: int) -> None:
        """A call of a turn. Turns are numbered upwards."""
        pending = _Pending(call, turn)
        ways: list[Hashable] = [("name", name), ("any",)]
        if call_id is None:
            ways += [("no id", name), ("no id",)]
        else:
            ways += [("id", call_id), ("id", call_id, name)]
            self._last[call_id] = pending
        for way in ways:
            stack = self._stacks.setdefault(way, [])
            if not stack or stack[-1][0] != turn:
                stack.append((turn, deque()))
            stack[-1][1].append(pending)

    def answered_by(self, call_id: str | None, name: str) -> AnyCall | None:
        """The call that a result answers, which is then answered; ``name`` is empty when the result has none.

        A second result of the same id answers the same call again. A result with an id that no call has answers one that has no id.
        """
        if call_id is None:
            found = self._first(("name", name) if name else ("any",))
        else:
            found = self._first(("id", call_id, name)) or self._first(("id", call_id)) or self._last.get(call_id)
            found = found or self._first(("no id", name) if name else ("no id",))
        if found is None:
            return None
        found.answered = True
        return found.call

    def _first(self, way: Hashable) -> _Pending[AnyCall] | None:
        stack = self._stacks.get(way, [])
        while stack:
            waiting = stack[-1][1]
            while waiting and waiting[0].answered:
                waiting.popleft()
            if waiting:
                return waiting[0]
            stack.pop()
        return None
