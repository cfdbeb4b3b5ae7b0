"""Events of a streamed answer as the answer that they make up, for each vendor's form.

Events that are not known are passed over, and a stream that breaks off gives what came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from adapters.importers.json_literals import decode
from adapters.transcripts.fields import field_of, list_of, objects_in, text_of
from adapters.transcripts.model import Message

_ANTHROPIC: Final = frozenset(
    {"message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta", "content_block_stop", "ping"}
)
_RESPONSES: Final = "response."
_MOST_INDEX: Final = 100_000


def stream_id(event: JsonValue) -> str | None:
    """What tells the events of one answer from those of the next: empty when the event alone does not say; None for what is no event."""
    if not isinstance(event, dict) or "request" in event:
        return None
    kind = text_of(event, "type") or ""
    if kind in _ANTHROPIC or kind.startswith(_RESPONSES):
        return text_of(event.get("message"), "id") or text_of(event.get("response"), "id") or ""
    if (text_of(event, "object") or "").endswith(".chunk") or ("choices" in event and _has_delta(event)):
        return text_of(event, "id") or ""
    return text_of(event, "responseId", "response_id") or "" if isinstance(event.get("candidates"), list) else None


def begins(event: JsonValue) -> bool:
    """Whether the event is always the first of its stream."""
    return text_of(event, "type") in {"message_start", "response.created"}


def events_of(text: str) -> list[JsonValue]:
    """The events of a text of server-sent events. Raises ValueError for data that is no JSON."""
    found: list[JsonValue] = []
    for line in text.splitlines():
        if line.startswith("data:"):
            data = line.removeprefix("data:").strip()
            if data and data != "[DONE]":
                found.append(decode(data))
    return found


def assembled(events: Sequence[JsonValue]) -> Message:
    """The answer that the events make up, as the vendor gives it when it does not stream."""
    first = next((event for event in events if stream_id(event) is not None), None)
    kind = text_of(first, "type") or ""
    if kind in _ANTHROPIC:
        return _anthropic(events)
    if kind.startswith(_RESPONSES):
        return _responses(events)
    if isinstance(field_of(first, "candidates"), list):
        return _gemini(events)
    return _chat(events)


def _has_delta(event: Message) -> bool:
    return any("delta" in choice for choice in objects_in(event.get("choices")))


def _append(target: Message, name: str, text: JsonValue) -> None:
    if isinstance(text, str):
        before = target.get(name)
        target[name] = (before if isinstance(before, str) else "") + text


class _Texts:
    """Texts that come in many pieces, joined once at the end: a stream of a megabyte has a hundred thousand."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[int, str], tuple[Message, list[str]]] = {}

    def add(self, target: Message, name: str, text: JsonValue) -> None:
        if isinstance(text, str):
            self._pieces.setdefault((id(target), name), (target, []))[1].append(text)

    def close(self) -> None:
        for (_, name), (target, pieces) in self._pieces.items():
            _append(target, name, "".join(pieces))


def _chat(events: Sequence[JsonValue]) -> Message:
    message: Message = {"role": "assistant", "content": None}
    calls: dict[int, tuple[Message, Message]] = {}
    answer: Message = {}
    texts = _Texts()
    for event in events:
        if not isinstance(event, dict):
            continue
        for name in ("id", "created", "model", "error", "usage"):
            if event.get(name) is not None:
                answer[name] = event[name]
        choice = next(iter(objects_in(event.get("choices"))), None)
        delta = field_of(choice, "delta", "message")
        for name in ("content", "reasoning_content", "reasoning", "refusal"):
            texts.add(message, name, field_of(delta, name))
        for number, piece in enumerate(objects_in(field_of(delta, "tool_calls"))):
            index = _index(piece.get("index"), number)
            function: Message
            call, function = calls.setdefault(index, ({"type": "function"}, {"name": "", "arguments": ""}))
            if isinstance(piece.get("id"), str):
                call["id"] = piece["id"]
            for name in ("name", "arguments"):
                texts.add(function, name, field_of(piece.get("function"), name))
    texts.close()
    if calls:
        message["tool_calls"] = [{**call, "function": function} for _, (call, function) in sorted(calls.items())]
    said = len(message) > 2 or message["content"] is not None  # noqa: PLR2004 - role and content
    return {**answer, "choices": [{"message": message}]} if said else answer


def _anthropic(events: Sequence[JsonValue]) -> Message:
    answer: Message = {"type": "message", "role": "assistant"}
    blocks: dict[int, Message] = {}
    inputs: dict[int, Message] = {}
    texts = _Texts()
    for event in events:
        if not isinstance(event, dict):
            continue
        index = _index(event.get("index"), len(blocks))
        match event.get("type"):
            case "message_start" if isinstance(message := event.get("message"), dict):
                answer.update(message)
            case "content_block_start" if isinstance(block := event.get("content_block"), dict):
                blocks[index] = dict(block)
            case "content_block_delta" if index in blocks:
                delta = event.get("delta")
                for name in ("text", "thinking", "signature"):
                    texts.add(blocks[index], name, field_of(delta, name))
                texts.add(inputs.setdefault(index, {}), "json", field_of(delta, "partial_json"))
            case "error":
                answer["error"] = event.get("error")
            case _:
                pass
    texts.close()
    for index, given in inputs.items():
        if given.get("json"):
            blocks[index]["input"] = given["json"]
    answer["content"] = [block for _, block in sorted(blocks.items())]
    return answer


def _responses(events: Sequence[JsonValue]) -> Message:
    answer: Message = {"object": "response"}
    items: dict[int, JsonValue] = {}
    for event in events:
        whole = field_of(event, "response")
        if isinstance(whole, dict):
            answer.update(whole)
        if text_of(event, "type") == "response.output_item.done":
            items[_index(field_of(event, "output_index"), len(items))] = field_of(event, "item")
    if not list_of(answer, "output"):
        answer["output"] = [item for _, item in sorted(items.items(), key=lambda pair: pair[0])]
    return answer


def _gemini(events: Sequence[JsonValue]) -> Message:
    answer: Message = {}
    parts: list[JsonValue] = []
    texts = _Texts()
    last: Message | None = None
    for event in events:
        if not isinstance(event, dict):
            continue
        answer.update({name: value for name, value in event.items() if name != "candidates"})
        content = field_of(next(iter(list_of(event, "candidates")), None), "content")
        for part in list_of(content, "parts"):
            text = text_of(part, "text")
            if not isinstance(part, dict) or text is None:
                last = None
                parts.append(part)
                continue
            if last is None or last.get("thought") != part.get("thought"):
                last = {**part, "text": ""}
                parts.append(last)
            texts.add(last, "text", text)
    texts.close()
    return {**answer, "candidates": [{"content": {"role": "model", "parts": parts}}]}


def _index(value: JsonValue, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_INDEX else default
