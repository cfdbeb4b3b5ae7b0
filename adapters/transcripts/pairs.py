"""Turns made fit for a request: every call has an id of its own and its results right behind it, as all vendors require.

A vendor refuses a call without a result, a result without a call, and anything between the two. A transcript may have all three: it was cut
off, it goes on from another, or a user spoke while a tool was at work.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from adapters.transcripts.matching import Matching
from adapters.transcripts.model import Call, Part, Result, Text, Thought, Turn, result_text

NOTE_NO_RESULT: Final = "a call without a result got one that says so"
NOTE_NO_CALL: Final = "a result without a call became a user's text"
NOTE_MOVED: Final = "a result was moved to stand behind its call"
NOTE_CALL_ID: Final = "an id of a call was adapted to the vendor's rules"
NOTE_TOOL_NAME: Final = "a name of a tool was adapted to the vendor's rules"
NOTE_TIMES: Final = "times were left out: no request has a place for them"
NOTE_NAMES: Final = "names of who speaks were left out"
NOTE_HINTS: Final = "hints for the import were left out: no request has a place for them"
NOTE_SURROGATES: Final = "halves of surrogate pairs were replaced"
NOTE_REQUEST_ERROR: Final = "a request that failed is no part of another"

NO_RESULT: Final = "(no result was recorded)"
MADE_UP: Final = "call_"
DEVELOPER: Final = "developer"
"""The name of a system turn that OpenAI's newer role said."""
_SURROGATES: Final = re.compile(r"[\ud800-\udfff]")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class NameRules:
    """What names of tools and ids of calls may be: letters, digits, ``_`` and ``-``, of so many characters."""

    name: int
    """OpenAI: 64 (API reference, functions.name); Anthropic: 128 (API reference, tools.name); Gemini: 64 (FunctionDeclaration.name)."""
    call_id: int | None = None
    """None: any text. Anthropic has the same letters as for names (an error of its API names the pattern)."""


def storable(text: str, notes: Counter[str]) -> str:
    """The text without halves of surrogate pairs, which no UTF-8 can carry."""
    if text.isascii() or not _SURROGATES.search(text):
        return text
    notes[NOTE_SURROGATES] += 1
    return _SURROGATES.sub("\ufffd", text)


def fit(text: str, longest: int) -> str:
    """A name as near to the text as may be, of the letters that vendors take; what had to be changed ends with a digest of the text."""
    if len(text) <= longest and text and not _OTHERS.search(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{_OTHERS.sub('_', text[: longest - 9])}_{digest}"


@dataclass(slots=True, eq=False)
class _Asked:
    call: Call
    group: list[_Asked]
    """The calls of its turn."""
    result: Turn | None = None
    answered: int = 0
    """Which answer this is, from 1: results stand in the order in which they came."""


@dataclass(slots=True)
class _Preparing:
    """One pass over the turns. Calls wait for results by id, and by name where a side has no id."""

    rules: NameRules
    notes: Counter[str]
    out: list[Turn | list[_Asked]] = field(default_factory=list["Turn | list[_Asked]"])
    calls: Matching[_Asked] = field(default_factory=Matching["_Asked"])
    used: set[str] = field(default_factory=set[str])
    answers: int = 0

    def assistant(self, turn: Turn) -> None:
        parts: list[Part] = []
        group: list[_Asked] = []
        for part in turn.parts:
            if not isinstance(part, Call):
                parts.append(_cleaned(part, self.notes))
                continue
            asked = _Asked(replace(part, call_id=self._own_id(part.call_id), name=self._name(part.name)), group)
            group.append(asked)
            parts.append(asked.call)
            self.calls.add(asked, name=part.name, call_id=part.call_id, turn=len(self.out))
        if parts:
            self.out.append(replace(turn, parts=tuple(parts)))
        if group:
            self.out.append(group)

    def tool(self, turn: Turn) -> None:
        part = turn.parts[0]
        assert isinstance(part, Result)
        asked = self.calls.answered_by(part.call_id, part.name or "")
        text = storable(part.text, self.notes)
        if asked is None:
            self.notes[NOTE_NO_CALL] += 1
            said = f"A tool returned:\n\n{storable(result_text(part), self.notes)}" if part.text.strip() else "A tool returned nothing."
            self.out.append(Turn("user", (Text(said), *part.files)))
            return
        if self.out[-1] is not asked.group:
            self.notes[NOTE_MOVED] += 1
        if asked.result is not None:
            # A second result of one call is refused everywhere; it is said with the first.
            first = asked.result.parts[0]
            assert isinstance(first, Result)
            self.notes[NOTE_MOVED] += 1
            text, files = f"{first.text}\n\n{text}", (*first.files, *part.files)
            asked.result = replace(asked.result, parts=(replace(first, text=text, files=files, failed=first.failed or part.failed),))
            return
        if part.name is not None and self._name(part.name) != asked.call.name:
            self.notes[NOTE_TOOL_NAME] += 1
        self.notes[NOTE_CALL_ID] += part.call_id is not None and part.call_id != asked.call.call_id
        self.answers += 1
        asked.answered = self.answers
        asked.result = replace(turn, parts=(replace(part, text=text, call_id=asked.call.call_id, name=asked.call.name),))

    def paired(self) -> list[Turn]:
        """All turns, the results of each turn of calls right behind it."""
        found: list[Turn] = []
        for item in self.out:
            if isinstance(item, Turn):
                found.append(item)
                continue
            for asked in sorted(item, key=lambda asked: asked.answered or sys.maxsize):
                if asked.result is None:
                    self.notes[NOTE_NO_RESULT] += 1
                    asked.result = Turn("tool", (Result(NO_RESULT, asked.call.call_id, asked.call.name),))
                found.append(asked.result)
        return found

    def _name(self, name: str) -> str:
        fitting = fit(name, self.rules.name)
        self.notes[NOTE_TOOL_NAME] += fitting != name
        return fitting

    def _own_id(self, call_id: str | None) -> str:
        """The id when it is free and the vendor takes it, else one made up from it."""
        number = len(self.used) + 1
        wanted = call_id or f"{MADE_UP}{number}"
        fitting = wanted if self.rules.call_id is None else fit(wanted, self.rules.call_id)
        while fitting in self.used:
            number += 1
            fitting = f"{MADE_UP}{number}"
        if call_id is not None and fitting != call_id:
            self.notes[NOTE_CALL_ID] += 1
        self.used.add(fitting)
        return fitting


def prepared(turns: Sequence[Turn], rules: NameRules, notes: Counter[str], *, names: frozenset[str] = frozenset()) -> list[Turn]:
    """The turns as a request can have them. ``names`` are the roles whose names the vendor's form holds, of the system's its
    one name ``developer``.
    """
    preparing = _Preparing(rules, notes)
    for turn in turns:
        notes[NOTE_TIMES] += turn.time is not None
        notes[NOTE_HINTS] += bool(turn.hints)
        notes[NOTE_NAMES] += turn.name is not None and (turn.role not in names or (turn.role == "system" and turn.name != DEVELOPER))
        match turn.role:
            case "error":
                notes[NOTE_REQUEST_ERROR] += 1
            case "assistant":
                preparing.assistant(turn)
            case "tool":
                preparing.tool(turn)
            case _ if turn.parts:
                preparing.out.append(replace(turn, parts=tuple(_cleaned(part, notes) for part in turn.parts)))
            case _:
                pass
    return preparing.paired()


def tied(turns: Sequence[Turn]) -> list[Turn]:
    """The turns with each result's name and id filled in from its call, where one side of a vendor's form leaves it out."""
    calls: Matching[Call] = Matching()
    found: list[Turn] = []
    for number, turn in enumerate(turns):
        for part in turn.parts:
            if isinstance(part, Call):
                calls.add(part, name=part.name, call_id=part.call_id, turn=number)
        if turn.role == "tool" and isinstance(part := turn.parts[0], Result):
            call = calls.answered_by(part.call_id, part.name or "")
            if call is not None:
                own = replace(part, name=part.name or call.name, call_id=part.call_id or call.call_id)
                found.append(replace(turn, parts=(own,)))
                continue
        found.append(turn)
    return found


def _cleaned(part: Part, notes: Counter[str]) -> Part:
    match part:
        case Text() | Thought():
            return replace(part, text=storable(part.text, notes))
        case _:
            return part
