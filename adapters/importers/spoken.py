"""What the parts of a turn say, as the text of a unit with its attachments; the bytes stand beside it for a store of originals (U14)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from adapters.importers.neutral import NOTE_BINARY, NOTE_CUT, neutral_text, tool_text
from adapters.transcripts.fields import OCTETS
from adapters.transcripts.model import FAILED, File, Part, Result, Text, described
from graph.model.base import MAX_SHORT_TEXT_CHARACTERS
from graph.model.content import MAX_CONTENT_BYTES
from graph.model.units import Attachment, ProvenanceSource

NOTE_ORIGINAL: Final = "a text that could not be kept whole has its original as an attachment"
NOTE_MEDIA_TYPE: Final = "a file whose media type is none is kept as application/octet-stream"
_LOSSY: Final = frozenset({NOTE_BINARY, NOTE_CUT})
_READABLE: Final = re.compile(r"text/[\w.+-]+|application/(?:[\w.+-]+\+)?json")
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Original:
    """The bytes behind one attachment of a unit. ``unit_id`` is empty until the unit is made."""

    attachment: Attachment
    data: bytes
    unit_id: str = ""


@dataclass(slots=True)
class Said:
    """What a turn says: neutral text (empty when nothing), originals, and where files outside came from."""

    text: str
    originals: list[Original] = field(default_factory=list[Original])
    sources: list[ProvenanceSource] = field(default_factory=list[ProvenanceSource])


def original_of(data: bytes, media_type: str) -> Original:
    """The bytes with the attachment that refers to them by their SHA-256."""
    digest = hashlib.sha256(data).hexdigest()
    return Original(Attachment(uri=f"urn:sha256:{digest}", media_type=media_type, sha256=digest), data)


def said(parts: Iterable[Part], notes: Counter[str]) -> Said:
    """The text of a turn of a user, an assistant or a system; its parts joined by blank lines."""
    spoken = Said("")
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Text):
            texts.append(part.text)
        elif isinstance(part, File):
            texts.append(_file(part, spoken, notes))
    whole = "\n\n".join(text for text in texts if text.strip())
    if whole:
        spoken.text = _neutral(whole, neutral_text(whole), spoken, notes)
    return spoken


def tool_said(part: Result, notes: Counter[str]) -> Said:
    """What a tool returned, ``(empty)`` when nothing, after a line that says so when it failed."""
    spoken = Said("")
    words = [_file(file, spoken, notes) for file in part.files]
    if part.text.strip() or not words:
        room = MAX_CONTENT_BYTES - len(FAILED) if part.failed else MAX_CONTENT_BYTES
        spoken.text = _neutral(part.text, tool_text(part.text, room), spoken, notes)
    if part.failed or words:
        whole = "\n\n".join([spoken.text, *words] if spoken.text else words)
        whole = FAILED + whole if part.failed else whole
        spoken.text = _neutral(whole, neutral_text(whole), spoken, notes)
    return spoken


def _neutral(raw: str, changed: tuple[str, Sequence[str]], spoken: Said, notes: Counter[str]) -> str:
    """The changed text; where that lost something, what it was is an original."""
    text, why = changed
    notes.update(why)
    if not _LOSSY.isdisjoint(why):
        notes[NOTE_ORIGINAL] += 1
        spoken.originals.append(original_of(raw.encode("utf-8", "replace"), "text/plain"))
    return text


def _file(file: File, spoken: Said, notes: Counter[str]) -> str:
    """A file in words, and what it says when it is text."""
    words = described(file)
    if file.uri is not None and len(file.uri) <= MAX_SHORT_TEXT_CHARACTERS and not _UNSAFE.search(file.uri):
        spoken.sources.append(ProvenanceSource(source=file.kind, uri=file.uri))
    if file.data is None:
        return words
    notes[NOTE_MEDIA_TYPE] += file.retyped
    media_type = file.media_type or OCTETS
    spoken.originals.append(original_of(file.data, media_type))
    if not _READABLE.fullmatch(media_type):
        return words
    try:
        text = file.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return words
    return f"{words}\n\n{tool_text(text)[0]}" if text.strip() else words
