"""One message of a transcript in OpenAI's chat form, in neutral parts: its text, attachments, tool calls and time.

Nothing here repeats what a message says: an error names the field, a note what was done.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, cast

from pydantic import JsonValue

from adapters.importers.json_literals import NumberAsWritten, decode, depth, encode
from adapters.importers.neutral import EMPTY, neutral_text, tool_text
from graph.model.base import MAX_ID_CHARACTERS, MAX_SHORT_TEXT_CHARACTERS
from graph.model.content import MAX_CONTENT_BYTES
from graph.model.units import Attachment, ProvenanceSource

Message = dict[str, JsonValue]

MAX_ARGUMENT_DEPTH: Final = 32
NOTE_ARGUMENTS: Final = "tool arguments that no JSON object can hold were kept as text"
NOTE_ARGUMENTS_LEFT_OUT: Final = "tool arguments over the limit were left out"
NOTE_ARGUMENTS_CLEANED: Final = "characters that no text may hold were replaced in tool arguments"
NOTE_INLINE: Final = "an inline file became an attachment reference"
NOTE_PART: Final = "a part of a kind that is not known was left out"
NOTE_REASONING: Final = "hidden reasoning was left out"
NOTE_NAIVE: Final = "a time without an offset was left out"

_DATA_URI = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[^;,]{1,64}){0,4}?;base64,(.*)\Z", re.DOTALL)
_PLAIN = re.compile(r"[\w.+-]{1,40}")
_UNSAFE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_LARGEST_INT, _SMALLEST_INT = 2**63 - 1, -(2**63)
_EPOCH_SECONDS, _EPOCH_MILLISECONDS = (10**8, 10**11), (10**11, 10**14)
_TEXT_PARTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_FILE_PARTS = {"image_url": "image", "input_image": "image", "image": "image", "input_audio": "audio", "file": "file", "input_file": "file"}


@dataclass(slots=True)
class Said:
    """What a message says: neutral text (empty when nothing), attachments, and where files outside came from."""

    text: str
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    sources: list[ProvenanceSource] = field(default_factory=list[ProvenanceSource])


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool as the assistant asked for it."""

    name: str
    call_id: str | None
    arguments: dict[str, JsonValue]


def said(message: Message, notes: Counter[str]) -> Said:
    """The text of a user, assistant or system message; its parts joined by blank lines."""
    result = Said("")
    texts = _texts(message.get("content"), result, notes)
    refusal = message.get("refusal")
    if isinstance(refusal, str):
        texts.append(refusal)
    if not texts:
        transcript = _field(message.get("audio"), "transcript")
        texts = [transcript] if isinstance(transcript, str) else []
    if message.get("reasoning_content") or message.get("reasoning"):
        notes[NOTE_REASONING] += 1
    whole = "\n\n".join(text for text in texts if text.strip())
    if whole:
        result.text, changed = neutral_text(whole)
        notes.update(changed)
    return result


def tool_said(message: Message, notes: Counter[str]) -> Said:
    """What a tool returned, ``(empty)`` when nothing. Values that are not text are read as JSON."""
    result = Said("")
    content = message.get("content")
    if content is None:
        text, changed = EMPTY, list[str]()
    elif isinstance(content, str):
        text, changed = tool_text(content)
    elif isinstance(content, list) and content and all(isinstance(_field(part, "type"), str) for part in content):
        texts = _texts(content, result, notes)
        text, changed = tool_text(texts[0] if len(texts) == 1 else "\n\n".join(texts))
    else:
        text, changed = tool_text(encode(content))
    notes.update(changed)
    result.text = text
    return result


def tool_calls(message: Message, notes: Counter[str]) -> list[ToolCall]:
    """The calls of an assistant message, the old ``function_call`` among them. Raises ValueError with the field that is wrong."""
    raw = message.get("tool_calls")
    if raw is not None and not isinstance(raw, list):
        raise ValueError("tool_calls")
    calls = list(raw or [])
    if isinstance(message.get("function_call"), dict):
        calls.append({"function": message["function_call"]})
    found: list[ToolCall] = []
    for call in calls:
        asked = _field(call, "custom") if _field(call, "function") is None else _field(call, "function")
        if not isinstance(asked, dict):
            raise ValueError("tool_calls.function")  # noqa: TRY004 - one error for what a field should be
        arguments = asked.get("arguments", asked.get("input"))
        found.append(ToolCall(short(asked.get("name"), "unknown"), call_id(_field(call, "id")), _arguments(arguments, notes)))
    return found


def call_id(value: JsonValue) -> str | None:
    """The id by which a result names its call; None when there is none. One that is no id is hashed."""
    if not isinstance(value, str) or not value:
        return None
    return value if is_id(value) else f"sha256:{hashlib.sha256(value.encode('utf-8', 'replace')).hexdigest()[:32]}"


def is_id(text: str) -> bool:
    """Whether the text may be an id: 1 to 128 visible characters."""
    return 0 < len(text) <= MAX_ID_CHARACTERS and text.isprintable() and " " not in text and not any(map(str.isspace, text))


def short(value: JsonValue, default: str) -> str:
    """A name as a short text."""
    if not isinstance(value, str) or not value.strip():
        return default
    return _UNSAFE.sub("\ufffd", value)[:MAX_SHORT_TEXT_CHARACTERS]


def when(message: Message, notes: Counter[str]) -> datetime | None:
    """When the message was said: ``timestamp``, ``created_at`` or ``created`` with an offset or as seconds or milliseconds since 1970."""
    for name in ("timestamp", "created_at", "created"):
        value = message.get(name)
        if isinstance(value, bool) or value is None:
            continue
        if isinstance(value, int | float):
            for (low, high), unit in ((_EPOCH_SECONDS, 1), (_EPOCH_MILLISECONDS, 1000)):
                if low <= value < high:
                    return datetime.fromtimestamp(float(value) / unit, UTC)
        elif isinstance(value, str):
            try:
                time = datetime.fromisoformat(value)
            except ValueError:
                continue
            if time.tzinfo is not None:
                return time
            notes[NOTE_NAIVE] += 1
    return None


def _field(value: JsonValue, name: str) -> JsonValue:
    return value.get(name) if isinstance(value, dict) else None


def _texts(content: JsonValue, result: Said, notes: Counter[str]) -> list[str]:
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    texts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        kind = "text" if isinstance(part, str) else _field(part, "type")
        text = part if isinstance(part, str) else _field(part, _TEXT_PARTS.get(str(kind), ""))
        if isinstance(text, str):
            texts.append(text)
        elif isinstance(part, dict) and kind in _FILE_PARTS:
            texts.append(_file(_FILE_PARTS[str(kind)], part, result, notes))
        else:
            named = kind if isinstance(kind, str) and _PLAIN.fullmatch(kind) else "unknown"
            texts.append(f"(a part of type {named} was left out)")
            notes[NOTE_PART] += 1
    return texts


def _file(kind: str, part: Message, result: Said, notes: Counter[str]) -> str:
    """A file in words; its bytes, when they are in the message, as a digest."""
    inner = part.get("image_url") or part.get("input_audio") or part.get("file") or part.get("image") or part
    place = inner if isinstance(inner, str) else _field(inner, "url") or _field(inner, "file_url") or _field(inner, "file_data")
    media_type, data = f"{kind}/*", _field(inner, "data")
    if isinstance(place, str) and (found := _DATA_URI.match(place)):
        media_type, data = found[1], found[2]
    elif isinstance(place, str):
        if len(place) <= MAX_SHORT_TEXT_CHARACTERS and not _UNSAFE.search(place):
            result.sources.append(ProvenanceSource(source=kind, uri=place))
        return f"({kind} at {place})"
    if isinstance(data, str):
        try:
            raw = base64.b64decode(data, validate=False)
        except binascii.Error:
            raw = data.encode("utf-8", "replace")
        form = _field(inner, "format")
        if media_type.endswith("/*"):
            media_type = f"{kind}/{form}" if isinstance(form, str) and _PLAIN.fullmatch(form) else "application/octet-stream"
        digest = hashlib.sha256(raw).hexdigest()
        result.attachments.append(Attachment(uri=f"urn:sha256:{digest}", media_type=media_type, sha256=digest))
        notes[NOTE_INLINE] += 1
        return f"({kind}, {len(raw)} bytes, {media_type})"
    file_id = _field(inner, "file_id")
    return f"({kind} {file_id})" if isinstance(file_id, str) and is_id(file_id) else f"({kind})"


def _arguments(raw: JsonValue, notes: Counter[str]) -> dict[str, JsonValue]:
    """A call's arguments as an object; what is none, or has a number that would change, is kept as text under ``_raw``."""
    if raw is None or raw == "":
        return {}
    text = raw if isinstance(raw, str) else encode(raw)
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_CONTENT_BYTES:
        notes[NOTE_ARGUMENTS_LEFT_OUT] += 1
        return {"_omitted": f"{size} bytes, sha256 {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"}
    try:
        value = decode(raw) if isinstance(raw, str) else raw
        if isinstance(value, dict) and depth(value) <= MAX_ARGUMENT_DEPTH:
            cleaned = cast("dict[str, JsonValue]", _plain(value))
            if _UNSAFE.search(text) or "\\u" in text:
                notes[NOTE_ARGUMENTS_CLEANED] += encode(cleaned) != encode(value)
            return cleaned
    except (ValueError, RecursionError):
        pass
    notes[NOTE_ARGUMENTS] += 1
    return {"_raw": _clean(text)}


def _plain(value: JsonValue) -> JsonValue:
    """The value with numbers and texts that every store holds; raises ValueError when a number or key would change."""
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        found = {_clean(key): _plain(item) for key, item in value.items()}
        if len(found) != len(value):
            raise ValueError
        return found
    if isinstance(value, NumberAsWritten):
        number = float(value)
        if not math.isfinite(number) or Decimal(value.text) != Decimal(repr(number)):
            raise ValueError
        return number
    finite = not isinstance(value, float) or math.isfinite(value)
    if not finite or (isinstance(value, int) and not _SMALLEST_INT <= value <= _LARGEST_INT):
        raise ValueError
    return value


def _clean(text: str) -> str:
    return _UNSAFE.sub(lambda found: "\u2400" if found[0] == "\x00" else "\ufffd", text)
