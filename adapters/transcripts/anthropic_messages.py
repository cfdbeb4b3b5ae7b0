"""Anthropic's Messages: ``system`` beside messages of blocks; results stand in the user's next message, before anything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from adapters.importers.json_literals import encode
from adapters.transcripts.fields import (
    NOTE_INLINE,
    NOTE_OPAQUE,
    OCTETS,
    arguments_of,
    base64_of,
    call_id,
    field_of,
    file_from,
    left_out,
    list_of,
    media_type_of,
    objects_in,
    odd_media_type,
    short,
    text_of,
    when,
)
from adapters.transcripts.model import (
    Call,
    File,
    FileKind,
    Malformed,
    Message,
    Part,
    Result,
    Text,
    Thought,
    Turn,
    Written,
    place_of,
    result,
)
from adapters.transcripts.openai_chat import NOTE_FILES, NOTE_REASONING, NOTE_REFUSALS, described_part, held
from adapters.transcripts.pairs import NameRules, prepared, tied

_RULES: Final = NameRules(name=128, call_id=64)
_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Media types of an image's bytes (anthropic 2.14, Base64ImageSourceParam)."""
_PDF, _PLAIN_TEXT = "application/pdf", "text/plain"
_ROLES: Final = frozenset({"system", "user", "assistant"})
_OPAQUE: Final = ("encrypted_content", "encrypted_index", "encrypted_stdout", "signature")
_SAID: Final = frozenset({"text", "thinking", "redacted_thinking", "compaction"})
_NOTHING_SAID: Final = frozenset({"fallback", "mid_conv_system"})


@dataclass(frozen=True, slots=True)
class AnthropicMessages:
    """Reads and writes the form."""

    name: str = "anthropic"

    def messages(self, request: JsonValue, response: JsonValue) -> list[JsonValue]:
        """``system`` as a message, the messages, the answer."""
        system = field_of(request, "system")
        found: list[JsonValue] = [] if system is None else [{"role": "system", "content": system}]
        found += list_of(request, "messages")
        if isinstance(field_of(response, "content"), list):
            found.append({"role": "assistant", "content": field_of(response, "content")})
        return found

    def turns(self, messages: Sequence[JsonValue], notes: Counter[str]) -> list[Turn]:
        """A message with results is several turns; one with what the vendor ran itself as well."""
        reading = _Reading(notes)
        for index, message in enumerate(messages):
            if not isinstance(message, dict):
                raise Malformed(index, "is no object")
            role = message.get("role")
            if not isinstance(role, str) or role not in _ROLES:
                raise Malformed(index, "has an unknown role")
            content = message.get("content")
            if content is not None and not isinstance(content, str | list):
                raise Malformed(index, "has a wrong content")
            reading.message(role, [content] if isinstance(content, str) else content or [], message)
        return tied(reading.turns)

    def write(self, turns: Sequence[Turn], *, model: str | None = None) -> Written:  # noqa: ARG002 - the same for all models
        """``system`` and ``messages`` of a request."""
        notes: Counter[str] = Counter()
        system: list[JsonValue] = []
        messages: list[Message] = []
        before: Turn | None = None
        for turn in prepared(turns, _RULES, notes):
            role = "user" if turn.role == "tool" else turn.role
            blocks = _blocks(turn, notes)
            if turn.role == "system" and not messages:
                system += blocks
            elif blocks:
                # Results of one turn belong into one message, and what the user says next stands behind them.
                joins = before is not None and before.role == "tool" and turn.role in {"tool", "user"} and messages[-1]["role"] == "user"
                last = messages[-1]["content"] if joins else None
                if isinstance(last, list):
                    last += blocks
                else:
                    messages.append({"role": role, "content": blocks})
                before = turn
        request: dict[str, JsonValue] = {"messages": list[JsonValue](messages)}
        return Written({"system": system, **request} if system else request, +notes)


@dataclass(slots=True)
class _Reading:
    notes: Counter[str]
    turns: list[Turn] = field(default_factory=list[Turn])
    parts: list[Part] = field(default_factory=list[Part])

    def message(self, role: str, blocks: Sequence[JsonValue], message: Message) -> None:
        time = when(message, self.notes)
        for block in blocks:
            part = self.part_of(block)
            if part is not None:
                if role == "system":
                    self.turns.append(Turn("system", (Text(described_part(part)),), time=time))
                elif isinstance(part, Result):
                    self.close(role, time)
                    self.turns.append(Turn("tool", (part,), time=time))
                else:
                    if role == "assistant" and self.parts and place_of(part) < place_of(self.parts[-1]):
                        self.close(role, time)
                    self.parts.append(part)
        self.close(role, time)

    def close(self, role: str, time: datetime | None) -> None:
        if self.parts:
            self.turns.append(Turn("assistant" if role == "assistant" else "user", tuple(self.parts), time=time))
        self.parts = []

    def part_of(self, block: JsonValue) -> Part | None:
        """What a block is; None when it says nothing."""
        if isinstance(block, str):
            return Text(block) if block.strip() else None
        kind = text_of(block, "type") or ""
        if not isinstance(block, dict) or kind in _NOTHING_SAID:
            return None if isinstance(block, dict) else Text(left_out(None, self.notes))
        said = self.said(kind, block)
        return said if said is not None else self.used(kind, block)

    def said(self, kind: str, block: Message) -> Text | Thought | None:
        """Text and reasoning."""
        match kind:
            case "text":
                return _filled(Text(text_of(block, "text") or ""))
            case "thinking":
                self.notes[NOTE_OPAQUE] += bool(block.get("signature"))
                return _filled(Thought(text_of(block, "thinking") or ""))
            case "redacted_thinking" | "compaction":
                self.notes[NOTE_OPAQUE] += 1
                return _filled(Thought(text_of(block, "content") or ""))
            case "search_result":
                return Text(_search_result(block))
            case _:
                return None

    def used(self, kind: str, block: Message) -> Part | None:
        """Files, calls and results."""
        if kind in _SAID:
            return None
        if kind in {"image", "document"}:
            return self.file(block)
        if kind == "container_upload":
            return file_from("file", None, file_id=block.get("file_id"))
        if kind.endswith("tool_use"):
            return Call(short(block.get("name"), "unknown"), call_id(block.get("id")), arguments_of(block.get("input"), self.notes))
        if kind.endswith("tool_result"):
            return self.result(block) if kind == "tool_result" else self.hosted(block)
        return Text(left_out(kind, self.notes))

    def file(self, block: Message) -> File:
        found = file_of(block)
        self.notes[NOTE_INLINE] += found.data is not None
        return found

    def result(self, block: Message) -> Result:
        """What a tool of the caller returned: texts and files; blocks of other kinds as the JSON that they are."""
        content = block.get("content")
        texts: list[str] = []
        files: list[File] = []
        others: list[JsonValue] = []
        for item in [content] if isinstance(content, str) else list_of(block, "content"):
            kind = text_of(item, "type")
            if isinstance(item, str):
                texts.append(item)
            elif isinstance(item, dict) and kind in {"image", "document"}:
                files.append(self.file(item))
            elif isinstance(item, dict) and kind == "search_result":
                texts.append(_search_result(item))
            elif (text := text_of(item, "text")) is not None and kind == "text":
                texts.append(text)
            else:
                others.append(self.readable(item))
        if others:
            texts.append(encode(others))
        text = texts[0] if len(texts) == 1 else "\n\n".join(text for text in texts if text.strip())
        return result(text, call_id(block.get("tool_use_id")), None, tuple(files), failed=block.get("is_error") is True)

    def hosted(self, block: Message) -> Result:
        """What a tool that the vendor ran returned, as JSON, without what only the vendor can read."""
        content = block.get("content")
        own_id = call_id(block.get("tool_use_id"))
        if isinstance(content, list) and content and all(text_of(item, "type") == "text" for item in content):
            return self.result(block)
        readable = [self.readable(item) for item in content] if isinstance(content, list) else self.readable(content)
        failed = block.get("is_error") is True or (text_of(content, "type") or "").endswith("_error")
        return result(readable if isinstance(readable, str) else encode(readable), own_id, None, failed=failed)

    def readable(self, value: JsonValue) -> JsonValue:
        if not isinstance(value, dict):
            return value
        kept = {name: item for name, item in value.items() if name not in _OPAQUE}
        self.notes[NOTE_OPAQUE] += len(kept) != len(value)
        return kept


def file_of(block: Message) -> File:
    """The file of an image or document block."""
    source = block.get("source")
    told = field_of(source, "media_type")
    kind: FileKind = "image" if block.get("type") == "image" else "file"
    match text_of(source, "type"):
        case "base64":
            media_type, odd = media_type_of(told, OCTETS), odd_media_type(told)
            return file_from(kind, None, data=text_of(source, "data") or "", media_type=media_type, name=block.get("title"), retyped=odd)
        case "text":
            text = text_of(source, "data") or ""
            name = short(block.get("title"), "") or None
            data = text.encode("utf-8", "replace")
            return File("file", media_type_of(told, _PLAIN_TEXT), data=data, name=name, retyped=odd_media_type(told))
        case "content":
            inner = field_of(source, "content")
            texts = [inner] if isinstance(inner, str) else [text_of(item, "text") or "" for item in objects_in(inner)]
            name = short(block.get("title"), "") or None
            return File("file", _PLAIN_TEXT, data="\n\n".join(texts).encode("utf-8", "replace"), name=name)
        case _:
            return file_from(kind, text_of(source, "url"), file_id=field_of(source, "file_id"), name=block.get("title"))


def _filled(part: Text | Thought) -> Text | Thought | None:
    return part if part.text.strip() else None


def _search_result(block: Message) -> str:
    texts = [text_of(item, "text") or "" for item in list_of(block, "content")]
    return "\n\n".join([f"{short(block.get('title'), 'untitled')} ({short(block.get('source'), 'no source')})", *filter(str.strip, texts)])


def _blocks(turn: Turn, notes: Counter[str]) -> list[JsonValue]:
    found: list[JsonValue] = []
    for part in turn.parts:
        match part:
            case Thought():
                # A thinking block needs the signature of the model that thought it; a request with another one is refused.
                notes[NOTE_REASONING] += 1
            case Call():
                found.append({"type": "tool_use", "id": part.call_id, "name": part.name, "input": part.arguments})
            case Result():
                found.append(_result(part, notes))
            case Text():
                notes[NOTE_REFUSALS] += part.refusal
                found.append({"type": "text", "text": part.text})
            case File():
                block = _file_block(part, notes) if turn.role == "user" else None
                notes[NOTE_FILES] += block is None
                found.append(block or {"type": "text", "text": described_part(part)})
    return found


def _result(part: Result, notes: Counter[str]) -> Message:
    content: JsonValue = part.text
    if part.files:
        blocks: list[JsonValue] = [{"type": "text", "text": part.text}] if part.text else []
        for file in part.files:
            block = _file_block(file, notes)
            notes[NOTE_FILES] += block is None
            blocks.append(block or {"type": "text", "text": described_part(file)})
        content = blocks
    return {"type": "tool_result", "tool_use_id": part.call_id, "content": content, "is_error": part.failed}


def _file_block(file: File, notes: Counter[str]) -> Message | None:
    """The block that holds the file; None when there is none that reads back as the same file."""
    source: Message | None = None
    if file.data is None:
        source = {"type": "url", "url": file.uri} if file.uri else {"type": "file", "file_id": file.file_id} if file.file_id else None
    elif file.media_type in _IMAGES or file.media_type == _PDF:
        source = {"type": "base64", "media_type": file.media_type, "data": base64_of(file.data)}
    elif file.media_type == _PLAIN_TEXT:
        try:
            source = {"type": "text", "media_type": _PLAIN_TEXT, "data": file.data.decode("utf-8")}
        except UnicodeDecodeError:
            return None
    if source is None or file.kind not in {"image", "file"}:
        return None
    kind = "image" if file.kind == "image" else "document"
    block: Message = {"type": kind, "source": source}
    if kind == "document" and file.name:
        block["title"] = file.name
    return held(block, file_of(block), file, notes)
