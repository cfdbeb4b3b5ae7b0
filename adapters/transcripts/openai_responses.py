"""OpenAI's Responses: ``instructions`` and a flat list of typed items, in the request as in the answer."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from adapters.importers.json_literals import encode
from adapters.transcripts.fields import (
    NOTE_OPAQUE,
    NOTE_PART,
    arguments_of,
    call_id,
    data_uri,
    field_of,
    file_from,
    kind_named,
    list_of,
    objects_in,
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
    result_text,
)
from adapters.transcripts.openai_chat import NOTE_FILES, NOTE_REASONING, described_part, file_of, held, parts_of
from adapters.transcripts.pairs import DEVELOPER, NameRules, prepared, tied

NOTE_JOINED: Final = "turns of the assistant that follow each other became one"
_RULES: Final = NameRules(name=64)
_ARGUMENTS: Final = ("arguments", "input", "action", "operation", "queries", "code")
_NOTHING_SAID: Final = frozenset({"item_reference", "compaction_trigger", "configuration_update"})
_ROLES: Final = frozenset({"system", "developer", "user", "assistant"})


@dataclass(frozen=True, slots=True)
class OpenAIResponses:
    """Reads and writes the form."""

    name: str = "openai-responses"

    def messages(self, request: JsonValue, response: JsonValue) -> list[JsonValue]:
        """``instructions`` as a system message, the items of the input, the items of the output."""
        instructions = text_of(request, "instructions")
        asked = field_of(request, "input")
        first: list[JsonValue] = [] if instructions is None else [{"role": "system", "content": instructions}]
        items: list[JsonValue] = [{"role": "user", "content": asked}] if isinstance(asked, str) else list_of(request, "input")
        output = list_of(response, "output")
        if output and isinstance(output[0], dict) and field_of(response, "created_at") is not None:
            output = [{"created_at": field_of(response, "created_at"), **output[0]}, *output[1:]]
        return [*first, *items, *output]

    def turns(self, messages: Sequence[JsonValue], notes: Counter[str]) -> list[Turn]:
        """A turn of the assistant goes on until another speaks, or until a message or reasoning follows a call."""
        reading = _Reading(notes)
        for index, item in enumerate(messages):
            if not isinstance(item, dict):
                raise Malformed(index, "is no object")
            reading.item(index, item)
        reading.close()
        return tied(reading.turns)

    def write(self, turns: Sequence[Turn], *, model: str | None = None) -> Written:  # noqa: ARG002 - the same for all models
        """``instructions`` and ``input`` of a request."""
        notes: Counter[str] = Counter()
        request: dict[str, JsonValue] = {}
        items: list[JsonValue] = []
        before: Turn | None = None
        for number, turn in enumerate(prepared(turns, _RULES, notes, names=frozenset({"system"}))):
            match turn.role:
                case "system":
                    text = "\n\n".join(map(described_part, turn.parts))
                    if number == 0 and turn.name != DEVELOPER:
                        request["instructions"] = text
                    else:
                        items.append({"type": "message", "role": DEVELOPER if turn.name == DEVELOPER else "system", "content": text})
                case "user":
                    items.append({"type": "message", "role": "user", "content": _content(turn.parts, notes)})
                case "tool":
                    items.append(_output(turn, notes))
                case _:
                    items += _said(turn, len(items), notes)
                    if before is not None and before.role == "assistant" and not any(isinstance(part, Text) for part in turn.parts):
                        notes[NOTE_JOINED] += 1
            before = turn
        return Written({**request, "input": items}, +notes)


@dataclass(slots=True)
class _Reading:
    notes: Counter[str]
    turns: list[Turn] = field(default_factory=list[Turn])
    parts: list[Part] = field(default_factory=list[Part])
    time: Message | None = None

    def close(self) -> None:
        """End the assistant's turn."""
        if self.parts:
            time = when(self.time, self.notes) if self.time is not None else None
            self.turns.append(Turn("assistant", tuple(self.parts), time=time))
        self.parts, self.time = [], None

    def add(self, part: Part, item: Message) -> None:
        """One more part of the assistant's turn, or the first of its next."""
        if self.parts and place_of(part) < place_of(self.parts[-1]):
            self.close()
        if self.time is None and item.get("created_at") is not None:
            self.time = item
        self.parts.append(part)

    def other(self, turn: Turn) -> None:
        """Another speaks; an empty message, as instructions may be, is none."""
        self.close()
        if turn.parts:
            self.turns.append(turn)

    def item(self, index: int, item: Message) -> None:
        kind = item.get("type")
        if kind is None or kind == "message":
            self.message(index, item)
        elif kind == "reasoning":
            self.reasoning(item)
        elif not isinstance(kind, str):
            raise Malformed(index, "has an unknown type")
        elif kind.endswith("_call"):
            self.call(kind, item)
        elif kind.endswith("_output"):
            value = field_of(item, "output", "tools", "result")
            self.other(Turn("tool", (_result_of(value, call_id(item.get("call_id")), None, self.notes),)))
        elif kind == "compaction":
            self.notes[NOTE_OPAQUE] += 1
        elif kind not in _NOTHING_SAID:
            # Lists of tools, approvals and what is not known yet: of no weight as context, and no reason to refuse the rest.
            self.notes[f"{NOTE_PART}: {kind_named(kind)}"] += 1

    def message(self, index: int, item: Message) -> None:
        role = item.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            raise Malformed(index, "has an unknown role")
        parts = parts_of(item.get("content"), self.notes)
        if role == "assistant":
            if self.parts and place_of(self.parts[-1]) > 0:
                self.close()
            for part in parts:
                self.add(part, item)
        elif role == "user":
            self.other(Turn("user", tuple(parts), time=when(item, self.notes)))
        else:
            text = "\n\n".join(map(described_part, parts))
            self.other(Turn("system", (Text(text),) if text else (), DEVELOPER if role == DEVELOPER else None, when(item, self.notes)))

    def reasoning(self, item: Message) -> None:
        texts = [text_of(part, "text") for part in list_of(item, "content")] or [text_of(part, "text") for part in list_of(item, "summary")]
        said = [text for text in texts if text is not None and text.strip()]
        if said:
            self.add(Thought("\n\n".join(said)), item)
        if item.get("encrypted_content"):
            self.notes[NOTE_OPAQUE] += 1

    def call(self, kind: str, item: Message) -> None:
        """A call, and its result when the vendor ran it and says what came of it."""
        named = short(item.get("name"), kind.removesuffix("_call"))
        own_id = call_id(item.get("call_id")) or call_id(item.get("id"))
        raw = field_of(item, *_ARGUMENTS)
        if "code" in item or "queries" in item:
            raw = {name: item[name] for name in ("code", "queries") if item.get(name) is not None}
        self.add(Call(named, own_id, arguments_of(raw, self.notes)), item)
        output = field_of(item, "error", "output", "outputs", "results", "result")
        if output is None:
            return
        if kind == "image_generation_call" and isinstance(output, str):
            files = (file_from("image", None, data=output, media_type="image/png"),)
            self.other(Turn("tool", (Result("", own_id, named, files),)))
            return
        self.other(Turn("tool", (_result_of(output, own_id, named, self.notes, failed=item.get("error") is not None),)))


def _result_of(value: JsonValue, own_id: str | None, name: str | None, notes: Counter[str], *, failed: bool = False) -> Result:
    if value is None or isinstance(value, str):
        return result(value or "", own_id, name, failed=failed)
    blocks = objects_in(value)
    if isinstance(value, list) and value and len(blocks) == len(value):
        kinds = {text_of(block, "type") for block in blocks}
        if kinds <= {"input_text", "output_text", "text", "input_image", "input_file", "refusal"}:
            parts = parts_of(value, notes)
            texts = [part.text for part in parts if isinstance(part, Text)]
            return result("\n\n".join(texts), own_id, name, tuple(part for part in parts if isinstance(part, File)), failed=failed)
        if kinds == {"logs"}:
            return result("\n".join(text_of(block, "logs") or "" for block in blocks), own_id, name, failed=failed)
    return result(encode(value), own_id, name, failed=failed)


def _content(parts: Sequence[Part], notes: Counter[str]) -> JsonValue:
    if len(parts) == 1 and isinstance(parts[0], Text):
        return parts[0].text
    return list(_blocks(parts, notes))


def _blocks(parts: Sequence[Part], notes: Counter[str]) -> Iterator[JsonValue]:
    for part in parts:
        block: Message | None = _file_block(part, notes) if isinstance(part, File) else None
        if block is None:
            notes[NOTE_FILES] += isinstance(part, File)
            block = {"type": "input_text", "text": described_part(part)}
        yield block


def _file_block(file: File, notes: Counter[str]) -> Message | None:
    """The block that holds the file; None when there is none that reads back as the same file."""
    uri = data_uri(file)
    block: Message
    if file.kind == "image":
        block = {
            "type": "input_image",
            "detail": "auto",
            **({"image_url": uri or file.uri} if uri or file.uri else {"file_id": file.file_id}),
        }
    else:
        place: Message = {"file_data": uri} if uri else {"file_url": file.uri} if file.uri else {"file_id": file.file_id}
        block = {"type": "input_file", **place, **({"filename": file.name} if file.name else {})}
    return held(block, file_of(block), file, notes)


def _said(turn: Turn, number: int, notes: Counter[str]) -> Iterator[JsonValue]:
    notes[NOTE_REASONING] += sum(isinstance(part, Thought) for part in turn.parts)
    said = [part for part in turn.parts if isinstance(part, Text | File)]
    notes[NOTE_FILES] += sum(isinstance(part, File) for part in said)
    if len(said) == 1 and isinstance(said[0], Text) and not said[0].refusal:
        yield {"type": "message", "role": "assistant", "content": said[0].text}
    elif said:
        content: list[JsonValue] = [
            {"type": "refusal", "refusal": part.text}
            if isinstance(part, Text) and part.refusal
            else {"type": "output_text", "text": described_part(part), "annotations": []}
            for part in said
        ]
        own_id = f"msg_{hashlib.sha256(f'{number}'.encode()).hexdigest()[:24]}"
        yield {"type": "message", "id": own_id, "role": "assistant", "status": "completed", "content": content}
    for part in turn.parts:
        if isinstance(part, Call):
            yield {"type": "function_call", "call_id": part.call_id, "name": part.name, "arguments": encode(part.arguments)}


def _output(turn: Turn, notes: Counter[str]) -> Message:
    part = turn.parts[0]
    assert isinstance(part, Result)
    text = result_text(part)
    output: JsonValue = text
    if part.files:
        output = list(_blocks([*([Text(text)] if text else []), *part.files], notes))
    return {"type": "function_call_output", "call_id": part.call_id, "output": output}
