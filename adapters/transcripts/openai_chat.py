"""OpenAI's Chat Completions: messages with ``tool_calls`` and ``tool_call_id``. DeepSeek's form is this one with ``reasoning_content``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from adapters.importers.json_literals import encode
from adapters.transcripts.fields import (
    NOTE_INLINE,
    arguments_of,
    base64_of,
    call_id,
    data_uri,
    field_of,
    file_from,
    left_out,
    list_of,
    media_type_of,
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
    described,
    result,
    result_text,
)
from adapters.transcripts.pairs import DEVELOPER, NameRules, prepared, tied

NOTE_FILES: Final = "files that the vendor's form cannot hold there became words"
NOTE_FILE_NAMES: Final = "names or media types of files were left out: the vendor's form has no place for them"
NOTE_REASONING: Final = "reasoning was left out: the vendor's form has no place for it"
NOTE_REFUSALS: Final = "refusals became plain text"

_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_HINTS: Final = ("id", "kind", "supersedes", "depends_on", "derived_from", "epistemic_status")
_TEXT_PARTS: Final = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
_FILE_PARTS: Final[dict[str, FileKind]] = {
    "image_url": "image",
    "input_image": "image",
    "image": "image",
    "input_audio": "audio",
    "file": "file",
    "input_file": "file",
}
_AUDIO: Final = {"audio/wav": "wav", "audio/mp3": "mp3"}
"""Formats of ``input_audio`` (openai 3.57, ChatCompletionContentPartInputAudioParam)."""
_RULES: Final = NameRules(name=64)


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """Reads and writes the form. ``reasoning``: whether it holds reasoning, as DeepSeek's does."""

    name: str = "openai-chat"
    reasoning: bool = False
    files: bool = True

    def messages(self, request: JsonValue, response: JsonValue) -> list[JsonValue]:
        """The messages of a request and of its answer."""
        said = field_of(next(iter(list_of(response, "choices")), None), "message")
        if not isinstance(said, dict):
            return list_of(request, "messages")
        return [*list_of(request, "messages"), {"created": field_of(response, "created"), **said}]

    def turns(self, messages: Sequence[JsonValue], notes: Counter[str]) -> list[Turn]:
        """One turn a message, also for one that says nothing. Raises Malformed."""
        return tied([_turn(index, message, notes) for index, message in enumerate(messages)])

    def write(self, turns: Sequence[Turn], *, model: str | None = None) -> Written:  # noqa: ARG002 - the same for all models
        """``messages`` of a request."""
        notes: Counter[str] = Counter()
        messages: list[JsonValue] = []
        for turn in prepared(turns, _RULES, notes, names=frozenset({"user", "assistant", "system"})):
            match turn.role:
                case "assistant":
                    message = self._assistant(turn, notes)
                    messages += [message] if len(message.keys() - {"role", "name"}) > 1 or message["content"] is not None else []
                case "tool":
                    messages.append(_tool(turn, notes))
                case "user":
                    messages.append(_named({"role": "user", "content": self._content(turn.parts, notes)}, turn))
                case _:
                    role = DEVELOPER if turn.name == DEVELOPER else "system"
                    messages.append({"role": role, "content": self._content(turn.parts, notes)})
        return Written({"messages": messages}, +notes)

    def _assistant(self, turn: Turn, notes: Counter[str]) -> Message:
        message = _named({"role": "assistant"}, turn)
        said = [part for part in turn.parts if isinstance(part, Text | File)]
        if any(isinstance(part, Text) and part.refusal for part in said) or len(said) > 1:
            content: list[JsonValue] = []
            for part in said:
                if isinstance(part, Text) and part.refusal:
                    content.append({"type": "refusal", "refusal": part.text})
                else:
                    content.append({"type": "text", "text": _words(part, notes)})
            message["content"] = content
        else:
            message["content"] = _words(said[0], notes) if said else None
        calls: list[JsonValue] = [
            {"id": part.call_id, "type": "function", "function": {"name": part.name, "arguments": encode(part.arguments)}}
            for part in turn.parts
            if isinstance(part, Call)
        ]
        if calls:
            message["tool_calls"] = calls
        thoughts = [part.text for part in turn.parts if isinstance(part, Thought)]
        if self.reasoning and (thoughts or calls):
            # V4 answers 400 when it is missing on a turn that calls a tool.
            message["reasoning_content"] = "\n\n".join(thoughts)
        elif thoughts:
            notes[NOTE_REASONING] += len(thoughts)
        if message["content"] is None and "reasoning_content" in message and not calls:
            message["content"] = ""
        return message

    def _content(self, parts: Sequence[Part], notes: Counter[str]) -> JsonValue:
        if len(parts) == 1 and isinstance(parts[0], Text):
            return parts[0].text
        content: list[JsonValue] = []
        for part in parts:
            block = _file_part(part, notes) if isinstance(part, File) and self.files else None
            content.append(block or {"type": "text", "text": _words(part, notes)})
        return content


def _words(part: Part, notes: Counter[str]) -> str:
    if isinstance(part, File):
        notes[NOTE_FILES] += 1
        return described(part)
    assert isinstance(part, Text)
    if part.refusal:
        notes[NOTE_REFUSALS] += 1
    return part.text


def _named(message: Message, turn: Turn) -> Message:
    return message if turn.name is None else {**message, "name": turn.name}


def _tool(turn: Turn, notes: Counter[str]) -> Message:
    part = turn.parts[0]
    assert isinstance(part, Result)
    text = result_text(part)
    if part.files:
        notes[NOTE_FILES] += len(part.files)
        text = "\n\n".join([text, *map(described, part.files)]) if text else "\n\n".join(map(described, part.files))
    return {"role": "tool", "tool_call_id": part.call_id, "content": text}


def _file_part(file: File, notes: Counter[str]) -> Message | None:
    """The part of a user's message that holds the file; None when there is none that reads back as the same file."""
    part: Message | None = None
    uri = data_uri(file)
    if file.kind == "image" and (uri or file.uri):
        part = {"type": "image_url", "image_url": {"url": uri or file.uri}}
    elif file.kind == "audio" and file.data is not None and file.media_type in _AUDIO:
        part = {"type": "input_audio", "input_audio": {"data": base64_of(file.data), "format": _AUDIO[file.media_type]}}
    elif file.kind == "file" and (uri or file.file_id):
        inner: Message = {"file_data": uri} if uri else {"file_id": file.file_id}
        part = {"type": "file", "file": {**inner, **({"filename": file.name} if file.name else {})}}
    return None if part is None else held(part, file_of(part), file, notes)


def held(part: Message, back: File, file: File, notes: Counter[str]) -> Message | None:
    """The part when it reads back as the same file, be it without its name or media type."""
    if (back.kind, back.data, back.uri, back.file_id) != (file.kind, file.data, file.uri, file.file_id):
        return None
    if back != file:
        notes[NOTE_FILE_NAMES] += 1
    return part


def _turn(index: int, message: JsonValue, notes: Counter[str]) -> Turn:
    if not isinstance(message, dict):
        raise Malformed(index, "is no object")
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise Malformed(index, "has an unknown role")
    time = when(message, notes)
    hints = {name: message[name] for name in _HINTS if message.get(name) is not None}
    name = short(message.get("name"), "") or None
    match role:
        case "assistant":
            return Turn("assistant", tuple(_assistant_parts(index, message, notes)), name, time, hints)
        case "tool" | "function":
            return Turn("tool", (_result(message, name, notes),), None, time, hints)
        case "user":
            return Turn("user", tuple(parts_of(message.get("content"), notes)), name, time, hints)
        case _:
            text = "\n\n".join(
                part.text if isinstance(part, Text) else described_part(part) for part in parts_of(message.get("content"), notes)
            )
            return Turn("system", (Text(text),) if text else (), DEVELOPER if role == DEVELOPER else None, time, hints)


def described_part(part: Part) -> str:
    """A part in words, where only text may stand."""
    return described(part) if isinstance(part, File) else part.text if isinstance(part, Text) else ""


def _assistant_parts(index: int, message: Message, notes: Counter[str]) -> list[Part]:
    said = parts_of(message.get("content"), notes)
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        said.append(Text(refusal, refusal=True))
    if not said:
        transcript = text_of(message.get("audio"), "transcript")
        said = [Text(transcript)] if transcript is not None and transcript.strip() else []
    reasoning = text_of(message, "reasoning_content", "reasoning")
    thoughts: list[Part] = [Thought(reasoning)] if reasoning is not None and reasoning.strip() else []
    return [*thoughts, *said, *_calls(index, message, notes)]


def _calls(index: int, message: Message, notes: Counter[str]) -> list[Call]:
    raw = message.get("tool_calls")
    if raw is not None and not isinstance(raw, list):
        raise Malformed(index, "has a wrong tool_calls")
    calls = list(raw or [])
    if isinstance(message.get("function_call"), dict):
        calls.append({"function": message["function_call"]})
    found: list[Call] = []
    for call in calls:
        asked = field_of(call, "function", "custom")
        if not isinstance(asked, dict):
            raise Malformed(index, "has a wrong tool_calls.function")
        arguments = asked.get("arguments", asked.get("input"))
        found.append(Call(short(asked.get("name"), "unknown"), call_id(field_of(call, "id")), arguments_of(arguments, notes)))
    return found


def _result(message: Message, name: str | None, notes: Counter[str]) -> Result:
    content = message.get("content")
    answers = call_id(message.get("tool_call_id"))
    if content is None or isinstance(content, str):
        return result(content or "", answers, name)
    if isinstance(content, list) and content and all(isinstance(field_of(part, "type"), str) for part in content):
        parts = parts_of(content, notes)
        texts = [part.text for part in parts if isinstance(part, Text)]
        return result("\n\n".join(texts), answers, name, tuple(part for part in parts if isinstance(part, File)))
    return result(encode(content), answers, name)


def parts_of(content: JsonValue, notes: Counter[str]) -> list[Part]:
    """What a message's content says, in order; blank texts are left out."""
    found: list[Part] = []
    for part in content if isinstance(content, list) else [] if content is None else [content]:
        kind = "text" if isinstance(part, str) else field_of(part, "type")
        text = part if isinstance(part, str) else text_of(part, _TEXT_PARTS.get(str(kind), ""))
        if text is not None:
            if text.strip():
                found.append(Text(text, refusal=kind == "refusal"))
        elif isinstance(part, dict) and isinstance(kind, str) and kind in _FILE_PARTS:
            file = file_of(part)
            notes[NOTE_INLINE] += file.data is not None
            found.append(file)
        else:
            found.append(Text(left_out(kind, notes)))
    return found


def file_of(part: Message) -> File:
    """The file of a part whose type is one of a file's."""
    kind = _FILE_PARTS[str(part["type"])]
    inner = part.get("image_url") or part.get("input_audio") or part.get("file") or part.get("image") or part
    place = inner if isinstance(inner, str) else text_of(inner, "url", "file_url", "file_data")
    form = text_of(inner, "format")
    told = f"{kind}/{form}" if form is not None else None
    media_type, odd = media_type_of(told), odd_media_type(told)
    name = field_of(inner, "filename")
    data, file_id = text_of(inner, "data"), field_of(inner, "file_id")
    return file_from(kind, place, data=data, media_type=media_type, file_id=file_id, name=name, retyped=odd)
