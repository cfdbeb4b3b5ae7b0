"""A transcript as no vendor says it: turns of parts. What readers give, what writers take, and what becomes units.

A turn of the assistant holds its reasoning first, then what it says, then what it calls. A turn of a tool holds one result. A turn of the
system holds one text. Blank texts are in no turn. Nothing opaque is held: no signature, no encrypted reasoning, no id of a vendor's store
but those of calls and of files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from pydantic import JsonValue

Message = dict[str, JsonValue]
Role = Literal["system", "user", "assistant", "tool", "error"]
FileKind = Literal["image", "audio", "video", "file"]

FAILED: Final = "The tool failed:\n\n"
"""What stands before the text of a result that is an error, wherever no field can say so. A text that begins with it is an error."""
_MARKS: Final = re.compile(f"(?:{re.escape(FAILED)})++")


@dataclass(frozen=True, slots=True)
class Text:
    """What was said. ``refusal``: the model says that it will not."""

    text: str
    refusal: bool = False


@dataclass(frozen=True, slots=True)
class File:
    """An image, a recording or a document: its bytes, or an address, or an id in a vendor's store of files; one of the three."""

    kind: FileKind
    media_type: str | None = None
    data: bytes | None = None
    uri: str | None = None
    file_id: str | None = None
    name: str | None = None
    retyped: bool = field(default=False, compare=False)
    """Its media type was told, but is none that a store takes."""


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning that the vendor shows as text, or its summary."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the assistant calls. Calls that the vendor runs itself are no different."""

    name: str
    call_id: str | None
    arguments: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool returned. ``name`` is that of the call, where it is known; ``failed`` says that the text tells an error."""

    text: str
    call_id: str | None = None
    name: str | None = None
    files: tuple[File, ...] = ()
    failed: bool = False


Part = Text | File | Thought | Call | Result


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said at once. ``name`` is who speaks when more is known than the role."""

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None
    time: datetime | None = None
    hints: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Fields for the import that stand in the message (``kind``, ``supersedes``, …); no vendor's request has a place for them."""


@dataclass(frozen=True, slots=True)
class Written:
    """A transcript as the fields of a vendor's request, and what the vendor's form could not hold, with how often."""

    request: dict[str, JsonValue]
    notes: Counter[str]


class Malformed(ValueError):
    """A message is not of the form that it should be. ``why`` repeats nothing of it."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(why)
        self.index = index
        self.why = why


def result(text: str, call_id: str | None = None, name: str | None = None, files: tuple[File, ...] = (), *, failed: bool = False) -> Result:
    """A result; a text that begins with ``FAILED`` is an error by that, a blank one is none."""
    marks = _MARKS.match(text)
    said = text[marks.end() :] if marks else text
    return Result(said if said.strip() else "", call_id, name, files, failed or marks is not None)


def result_text(part: Result) -> str:
    """The text of a result with the mark of an error, for a form that has no field for it."""
    return FAILED + part.text if part.failed else part.text


def described(file: File) -> str:
    """A file in words."""
    if file.data is not None:
        return f"({file.kind}, {len(file.data)} bytes, {file.media_type})"
    if file.uri is not None:
        return f"({file.kind} at {file.uri})"
    return f"({file.kind} {file.file_id})" if file.file_id else f"({file.kind})"


def place_of(part: Part) -> int:
    """Where a part stands in a turn of the assistant: reasoning, then words and files, then calls."""
    match part:
        case Thought():
            return 0
        case Call():
            return 2
        case _:
            return 1
