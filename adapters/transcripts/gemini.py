"""Gemini's generateContent: ``systemInstruction`` beside contents of parts. Names are read in both spellings, camelCase and snake_case."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from adapters.transcripts.openai_chat import NOTE_FILES, NOTE_REFUSALS, described_part, held
from adapters.transcripts.pairs import NameRules, prepared, tied

NOTE_SYSTEM_MOVED: Final = "a system text from the middle was moved to the system instruction"

_RULES: Final = NameRules(name=64)
_ROLES: Final = frozenset({"user", "model", "function", "system"})
_NO_SIGNATURE: Final = base64.b64encode(b"skip_thought_signature_validator").decode("ascii")
"""What Gemini 3 takes in place of a thought signature on a call that it did not make itself (Google's page on thought signatures)."""
_SIGNED: Final = "gemini-3"
_SINGLE: Final = ("output", "result")
"""Fields of a response that hold the whole of what a tool returned when they stand alone and are text (FunctionResponse.response)."""


@dataclass(frozen=True, slots=True)
class Gemini:
    """Reads and writes the form."""

    name: str = "gemini"

    def messages(self, request: JsonValue, response: JsonValue) -> list[JsonValue]:
        """The system instruction as a content, the contents, the first candidate."""
        system = field_of(request, "systemInstruction", "system_instruction")
        found: list[JsonValue] = []
        if system is not None:
            found.append({"role": "system", "parts": [{"text": system}] if isinstance(system, str) else field_of(system, "parts")})
        contents = field_of(request, "contents")
        if isinstance(contents, str):
            found.append({"role": "user", "parts": [{"text": contents}]})
        found += list_of(request, "contents")
        candidate = field_of(next(iter(list_of(response, "candidates")), None), "content")
        if isinstance(candidate, dict):
            found.append({"createTime": field_of(response, "createTime"), **candidate, "role": "model"})
        return found

    def turns(self, messages: Sequence[JsonValue], notes: Counter[str]) -> list[Turn]:
        """A content with results is several turns."""
        reading = _Reading(notes)
        for index, content in enumerate(messages):
            if not isinstance(content, dict):
                raise Malformed(index, "is no object")
            role = content.get("role") or "user"
            if not isinstance(role, str) or role not in _ROLES:
                raise Malformed(index, "has an unknown role")
            parts = content.get("parts")
            if parts is not None and not isinstance(parts, dict | list):
                raise Malformed(index, "has wrong parts")
            reading.content(role, parts if isinstance(parts, list) else [] if parts is None else [parts], content)
        return tied(reading.turns)

    def write(self, turns: Sequence[Turn], *, model: str | None = None) -> Written:
        """``systemInstruction`` and ``contents`` of a request; for a model of Gemini 3 with a mark on each call of another's making."""
        notes: Counter[str] = Counter()
        system: list[JsonValue] = []
        contents: list[Message] = []
        before: str | None = None
        signed = model is not None and _SIGNED in model
        for turn in prepared(turns, _RULES, notes):
            parts = _parts(turn, notes, signed=signed)
            if turn.role == "system":
                notes[NOTE_SYSTEM_MOVED] += bool(contents)
                system += parts
                continue
            last = contents[-1]["parts"] if before == "tool" and turn.role == "tool" else None
            if isinstance(last, list):
                last += parts  # as many responses in one content as the one before has calls
            else:
                contents.append({"role": "model" if turn.role == "assistant" else "user", "parts": parts})
            before = turn.role
        request: dict[str, JsonValue] = {"contents": list[JsonValue](contents)}
        return Written({"systemInstruction": {"parts": system}, **request} if system else request, +notes)


@dataclass(slots=True)
class _Reading:
    notes: Counter[str]
    turns: list[Turn] = field(default_factory=list[Turn])

    def content(self, role: str, parts: Sequence[JsonValue], content: Message) -> None:
        time = when(content, self.notes)
        held_back: list[Part] = []

        def close() -> None:
            if held_back:
                self.turns.append(Turn("assistant" if role == "model" else "user", tuple(held_back), time=time))
                held_back.clear()

        for raw in parts:
            part = self.part(raw)
            if part is None:
                continue
            if role == "system":
                self.turns.append(Turn("system", (Text(described_part(part)),), time=time))
            elif isinstance(part, Result):
                close()
                self.turns.append(Turn("tool", (part,), time=time))
            else:
                if role == "model" and held_back and place_of(part) < place_of(held_back[-1]):
                    close()
                held_back.append(part)
        close()

    def part(self, part: JsonValue) -> Part | None:
        if not isinstance(part, dict):
            return Text(left_out(None, self.notes))
        self.notes[NOTE_OPAQUE] += text_of(part, "thoughtSignature", "thought_signature") not in {None, "", _NO_SIGNATURE}
        text = part.get("text")
        if isinstance(text, str):
            said = Thought(text) if part.get("thought") is True else Text(text)
            return said if text.strip() else None
        return self.used(part)

    def used(self, part: Message) -> Part | None:
        """A call, a result or a file."""
        if (call := field_of(part, "functionCall", "function_call")) is not None:
            return Call(
                short(field_of(call, "name"), "unknown"), call_id(field_of(call, "id")), arguments_of(field_of(call, "args"), self.notes)
            )
        if (response := field_of(part, "functionResponse", "function_response")) is not None:
            return self.response(response)
        if field_of(part, "inlineData", "inline_data", "fileData", "file_data") is not None:
            file = file_of(part)
            self.notes[NOTE_INLINE] += file.data is not None
            return file
        return self.hosted(part)

    def response(self, response: JsonValue) -> Result:
        value = field_of(response, "response")
        files: list[File] = []
        for item in objects_in(field_of(response, "parts")):
            files.append(file_of(item))
            self.notes[NOTE_INLINE] += files[-1].data is not None
        text, failed = encode(value), False
        if value is None:
            text = ""
        elif isinstance(value, dict) and len(value) == 1:
            [(name, only)] = value.items()
            if isinstance(only, str) and (name in _SINGLE or name == "error"):
                text, failed = only, name == "error"
        name = short(field_of(response, "name"), "") or None
        return result(text, call_id(field_of(response, "id")), name, tuple(files), failed=failed)

    def hosted(self, part: Message) -> Part | None:
        """What the vendor ran itself: code, searches."""
        if (code := field_of(part, "executableCode", "executable_code")) is not None:
            asked: JsonValue = {key: value for key in ("language", "code") if (value := field_of(code, key)) is not None}
            return Call("code_execution", call_id(field_of(code, "id")), arguments_of(asked, self.notes))
        if (ran := field_of(part, "codeExecutionResult", "code_execution_result")) is not None:
            failed = text_of(ran, "outcome") not in {None, "OUTCOME_OK"}
            return result(text_of(ran, "output") or "", call_id(field_of(ran, "id")), "code_execution", failed=failed)
        for names, is_call in ((("toolCall", "tool_call"), True), (("toolResponse", "tool_response"), False)):
            found = field_of(part, *names)
            if found is None:
                continue
            name = short(field_of(found, "toolType", "tool_type"), "unknown").lower()
            own_id = call_id(field_of(found, "id"))
            if is_call:
                return Call(name, own_id, arguments_of(field_of(found, "args"), self.notes))
            return result(encode(field_of(found, "response")), own_id, name)
        if not set(part) - {"thoughtSignature", "thought_signature", "text", "thought"}:
            return None
        return Text(left_out(next(iter(part), None), self.notes))


def file_of(part: Message) -> File:
    """The file of a part with bytes or with an address."""
    inline = field_of(part, "inlineData", "inline_data")
    place = inline if inline is not None else field_of(part, "fileData", "file_data")
    told = field_of(place, "mimeType", "mime_type")
    media_type = media_type_of(told, None if inline is None else OCTETS)
    name = field_of(place, "displayName", "display_name")
    if inline is not None:
        odd = odd_media_type(told)
        return file_from("file", None, data=text_of(inline, "data") or "", media_type=media_type, name=name, retyped=odd)
    return file_from("file", text_of(place, "fileUri", "file_uri"), media_type=media_type, name=name)


def _parts(turn: Turn, notes: Counter[str], *, signed: bool) -> list[JsonValue]:
    found: list[JsonValue] = []
    for part in turn.parts:
        match part:
            case Thought():
                found.append({"text": part.text, "thought": True})
            case Call():
                call: Message = {"functionCall": {"id": part.call_id, "name": part.name, "args": part.arguments}}
                found.append({**call, "thoughtSignature": _NO_SIGNATURE} if signed else call)
            case Result():
                found.append(_response(part, notes))
            case Text():
                notes[NOTE_REFUSALS] += part.refusal
                found.append({"text": part.text})
            case File():
                found.append(_file_part(part, notes) or {"text": described_part(part)})
    return found


def _response(part: Result, notes: Counter[str]) -> Message:
    response: Message = {
        "id": part.call_id,
        "name": part.name,
        "response": {"error" if part.failed else "output": part.text},
    }
    words: list[str] = []
    held_files: list[JsonValue] = []
    for file in part.files:
        block = _file_part(file, notes)
        if block is None:
            words.append(described_part(file))
        else:
            held_files.append(block)
    if words:
        response["response"] = {"error" if part.failed else "output": "\n\n".join([part.text, *words] if part.text else words)}
    if held_files:
        response["parts"] = held_files
    return {"functionResponse": response}


def _file_part(file: File, notes: Counter[str]) -> Message | None:
    """The part that holds the file; None, and a note, when there is none that reads back as the same file."""
    part: Message | None = None
    if file.data is not None:
        part = {"inlineData": {"mimeType": file.media_type or OCTETS, "data": base64_of(file.data)}}
    elif file.uri is not None:
        part = {"fileData": {"fileUri": file.uri, **({"mimeType": file.media_type} if file.media_type else {})}}
    found = None if part is None else held(part, file_of(part), file, notes)
    notes[NOTE_FILES] += found is None
    return found
