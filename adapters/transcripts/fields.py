"""Names, ids, times, files and arguments as they stand in vendors' messages, made to fit what a unit may hold."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, cast

import orjson
from pydantic import JsonValue
from pydantic_core import PydanticCustomError

from adapters.importers.json_literals import NumberAsWritten, decode, depth, encode
from adapters.transcripts.model import File, FileKind, Message
from graph.model.attachments import MEDIA_TYPE, UNKNOWN_MEDIA_TYPE
from graph.model.base import MAX_SHORT_TEXT_CHARACTERS, check_id
from graph.model.content import MAX_CONTENT_BYTES
from graph.model.units import MAX_ARGUMENT_BYTES, MAX_ARGUMENT_LEVELS

NOTE_ARGUMENTS: Final = "tool arguments that no JSON object can hold were kept as text"
NOTE_ARGUMENTS_LEFT_OUT: Final = "tool arguments over the limit were left out"
NOTE_ARGUMENTS_CLEANED: Final = "characters that no text may hold were replaced in tool arguments"
NOTE_INLINE: Final = "an inline file became an attachment reference"
NOTE_PART: Final = "a part of a kind that is not known was left out"
NOTE_OPAQUE: Final = "reasoning, signatures or results that only their vendor can read were left out"
NOTE_NAIVE: Final = "a time without an offset was left out"

OCTETS: Final = UNKNOWN_MEDIA_TYPE
_DATA_URI: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^;,]{1,64}){0,4}?(;base64)?,", re.IGNORECASE)
_PLAIN: Final = re.compile(r"[\w.+-]{1,40}")
_UNSAFE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_URL_ALPHABET: Final = str.maketrans("-_", "+/")
_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/]+")
_LARGEST_INT, _SMALLEST_INT = 2**63 - 1, -(2**63)
_EPOCH_SECONDS, _EPOCH_MILLISECONDS = (10**8, 10**11), (10**11, 10**14)


def field_of(value: JsonValue, *names: str) -> JsonValue:
    """The first field of these names that an object has and that is not null; None for what is no object."""
    if isinstance(value, dict):
        for name in names:
            found = value.get(name)
            if found is not None:
                return found
    return None


def text_of(value: JsonValue, *names: str) -> str | None:
    """The first such field when it is a text."""
    found = field_of(value, *names)
    return found if isinstance(found, str) else None


def list_of(value: JsonValue, *names: str) -> list[JsonValue]:
    """The first such field when it is a list, else an empty one."""
    found = field_of(value, *names)
    return found if isinstance(found, list) else []


def objects_in(value: JsonValue) -> list[Message]:
    """The objects in a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def is_id(text: str) -> bool:
    """Whether the text may be an id: 1 to 128 visible characters."""
    try:
        check_id(text)
    except (PydanticCustomError, ValueError):
        return False
    return True


def call_id(value: JsonValue) -> str | None:
    """The id by which a result names its call; None when there is none. One that is no id is hashed."""
    if not isinstance(value, str) or not value:
        return None
    return value if is_id(value) else f"sha256:{hashlib.sha256(value.encode('utf-8', 'replace')).hexdigest()[:32]}"


def short(value: JsonValue, default: str) -> str:
    """A name as a short text."""
    if not isinstance(value, str) or not value.strip():
        return default
    return _UNSAFE.sub("\ufffd", value)[:MAX_SHORT_TEXT_CHARACTERS]


def kind_named(value: JsonValue) -> str:
    """The name of a kind of part as it may be repeated: plain and short, else ``unknown``."""
    return value if isinstance(value, str) and _PLAIN.fullmatch(value) else "unknown"


def left_out(kind: JsonValue, notes: Counter[str]) -> str:
    """What stands for a part that is not known."""
    notes[NOTE_PART] += 1
    return f"(a part of type {kind_named(kind)} was left out)"


def when(message: Message, notes: Counter[str]) -> datetime | None:
    """When a message was said: ``timestamp``, ``created_at``, ``created`` or ``createTime``, with an offset or in seconds or ms since 1970."""
    for name in ("timestamp", "created_at", "created", "createTime"):
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
                time.astimezone(UTC)
            except (ValueError, OverflowError):
                continue
            if time.tzinfo is not None:
                return time
            notes[NOTE_NAIVE] += 1
    return None


def media_type_of(value: JsonValue, default: str | None = None) -> str | None:
    """A media type without its parameters; the default for what is none that the store of originals takes."""
    if not isinstance(value, str):
        return default
    plain = value.partition(";")[0].strip()
    return plain if MEDIA_TYPE.fullmatch(plain) else default


def odd_media_type(value: JsonValue) -> bool:
    """Whether a media type was told that is none."""
    return isinstance(value, str) and bool(value.strip()) and media_type_of(value) is None


def kind_of(media_type: str | None, default: FileKind = "file") -> FileKind:
    """The kind of a file by its media type."""
    match (media_type or "").partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return default


def bytes_of(text: str) -> bytes:
    """The bytes of base64 in either alphabet, with or without padding; the text's own bytes when it is none."""
    plain = _NOT_BASE64.sub("", text.translate(_URL_ALPHABET))
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return text.encode("utf-8", "replace")


def base64_of(data: bytes) -> str:
    """Bytes as base64."""
    return base64.b64encode(data).decode("ascii")


def file_from(
    kind: FileKind,
    place: str | None,
    *,
    data: str | None = None,
    media_type: str | None = None,
    file_id: JsonValue = None,
    name: JsonValue = None,
    retyped: bool = False,
) -> File:
    """A file from a ``data:`` URI or an address, from base64, or from an id in a vendor's store. A media type decides its kind."""
    named = short(name, "") or None
    if place is not None and (found := _DATA_URI.match(place)):
        rest = place[found.end() :]
        raw = bytes_of(rest) if found[2] else rest.encode("utf-8", "replace")
        kept = media_type_of(found[1], media_type) or OCTETS
        return File(kind_of(kept, kind), kept, data=raw, name=named, retyped=odd_media_type(found[1]))
    if data is not None:
        return File(kind_of(media_type, kind), media_type or OCTETS, data=bytes_of(data), name=named, retyped=retyped)
    kind = kind_of(media_type, kind)
    if place is not None:
        return File(kind, media_type, uri=_UNSAFE.sub("\ufffd", place), name=named)
    stored = file_id if isinstance(file_id, str) and is_id(file_id) else None
    return File(kind, media_type, file_id=stored, name=named)


def data_uri(file: File) -> str | None:
    """The bytes of a file as a ``data:`` URI; None when they are not there."""
    return None if file.data is None else f"data:{file.media_type or OCTETS};base64,{base64_of(file.data)}"


def arguments_of(raw: JsonValue, notes: Counter[str]) -> dict[str, JsonValue]:
    """A call's arguments as an object; what is none, or has a number that would change, is kept as text under ``_raw``."""
    if raw is None or raw == "":
        return {}
    text = raw if isinstance(raw, str) else encode(raw)
    if len(text) > MAX_CONTENT_BYTES or len(text.encode("utf-8", "replace")) > MAX_CONTENT_BYTES:
        return _omitted(text, notes)
    try:
        value = decode(raw) if isinstance(raw, str) else raw
        if isinstance(value, dict) and depth(value) <= MAX_ARGUMENT_LEVELS:
            cleaned = cast("dict[str, JsonValue]", _storable(value))
            if len(orjson.dumps(cleaned)) > MAX_ARGUMENT_BYTES:
                return _omitted(text, notes)
            if _UNSAFE.search(text) or "\\u" in text:
                notes[NOTE_ARGUMENTS_CLEANED] += encode(cleaned) != encode(value)
            return cleaned
    except (ValueError, RecursionError, ArithmeticError):
        pass  # ArithmeticError: an exponent that no decimal number has
    kept: dict[str, JsonValue] = {"_raw": _clean(text)}
    if len(orjson.dumps(kept)) > MAX_ARGUMENT_BYTES:
        return _omitted(text, notes)
    notes[NOTE_ARGUMENTS] += 1
    return kept


def _omitted(text: str, notes: Counter[str]) -> dict[str, JsonValue]:
    notes[NOTE_ARGUMENTS_LEFT_OUT] += 1
    raw = text.encode("utf-8", "replace")
    return {"_omitted": f"{len(raw)} bytes, sha256 {hashlib.sha256(raw).hexdigest()}"}


def _storable(value: JsonValue) -> JsonValue:
    """The value with numbers and texts that every store holds; raises ValueError when a number or key would change."""
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        found = {_clean(key): _storable(item) for key, item in value.items()}
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
