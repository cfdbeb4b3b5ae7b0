"""One record of a file: of which vendor's form it is, and what was asked and answered in it.

A record is a list of messages; a request or an answer as the vendor's API has it; or an exchange, ``{"request": …, "response": …}``, where the
answer may be the events of a stream, as a list or as the text of server-sent events. ``body`` is read as what it holds, as batch files have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from adapters.importers.streams import assembled, events_of, stream_id
from adapters.transcripts.fields import field_of, list_of, objects_in, short, text_of
from adapters.transcripts.forms import FORMS
from adapters.transcripts.model import Message

MESSAGE_LISTS: Final = ("messages", "traj", "trajectory")
_PATHS: Final = (
    ("/chat/completions", "openai-chat"),
    ("/responses", "openai-responses"),
    ("/messages", "anthropic"),
    ("/messages/count_tokens", "anthropic"),
    (":generateContent", "gemini"),
    (":streamGenerateContent", "gemini"),
)
_ANTHROPIC_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document"})
_INPUT_PARTS: Final = frozenset({"input_text", "output_text", "input_file"})
_ITEMS: Final = frozenset({"message", "reasoning"})
_CHAT_ROLES: Final = frozenset({"tool", "function", "developer"})
_ITEM_ENDINGS: Final = ("_call", "_output")
_ASKED: Final = {"openai-responses": "input", "gemini": "contents"}
"""The field of a request that holds what is said; ``messages`` elsewhere."""
_FAILED_STATUS: Final = 400


@dataclass(frozen=True, slots=True)
class Record:
    """What a record holds, in its vendor's form."""

    form: str
    messages: list[JsonValue]
    model: str | None = None
    failure: str | None = None
    """Why there is no answer, in words, when the request was refused."""
    response_id: str | None = None
    previous_response_id: str | None = None


def record_of(found: JsonValue, form: str | None = None) -> Record | None:
    """The record, of ``form`` or of the one that it shows; None when it is of no form that is known."""
    if isinstance(found, list):
        if found and all(stream_id(item) is not None for item in found):
            return _exchange(None, assembled(found), "", form)
        chosen = form or form_of_messages(found)
        return None if chosen is None else Record(chosen, found)
    if not isinstance(found, dict):
        return None
    for name in MESSAGE_LISTS[1:]:
        messages = found.get(name)
        if isinstance(messages, list):
            return Record(form or form_of_messages(messages) or "openai-chat", messages, _model(found))
    request, response = _sides(found)
    record = _exchange(request, response, text_of(found, "uri_path", "url", "path") or "", form)
    status = found.get("status")
    if record is not None and record.failure is None and "response" in found and isinstance(status, int) and status >= _FAILED_STATUS:
        return replace(record, failure=f"The request failed with status {status}.")
    return record


def _sides(found: Message) -> tuple[JsonValue, JsonValue]:
    """What was asked and what was answered; a stream as the answer that it makes up."""
    request, response = _body(found.get("request")), found.get("response")
    if not isinstance(request, dict):
        request = found["body"] if isinstance(found.get("body"), dict) else None
    if request is None and "response" not in found:
        return (None, found) if _is_answer(found) else (found, None)
    if isinstance(response, str):
        try:
            response = events_of(response)
        except (ValueError, RecursionError):
            response = None
    return request, assembled(response) if isinstance(response, list) else _body(response)


def form_of_messages(messages: Sequence[JsonValue]) -> str | None:
    """The form of a list of messages: ``openai-chat`` when nothing in it is of another's; None when they are none."""
    if not messages or not all(isinstance(message, dict) and (message.keys() & {"role", "parts", "type"}) for message in messages):
        return None
    return _shown_by(messages) or "openai-chat"


def _shown_by(messages: Sequence[JsonValue]) -> str | None:
    """The form that the first telling message shows; None when all would do."""
    return next((form for message in messages if isinstance(message, dict) and (form := _shown(message)) is not None), None)


def _shown(message: Message) -> str | None:
    blocks = objects_in(message.get("content"))
    kinds = {text_of(block, "type") for block in blocks}
    kind = text_of(message, "type") or ""
    tells = {
        "gemini": isinstance(message.get("parts"), list),
        "openai-responses": bool(kinds & _INPUT_PARTS) or kind in _ITEMS or ("role" not in message and kind.endswith(_ITEM_ENDINGS)),
        "anthropic": bool(kinds & _ANTHROPIC_BLOCKS) or any("source" in block for block in blocks),
        "deepseek": isinstance(message.get("reasoning_content"), str),
        "openai-chat": text_of(message, "role") in _CHAT_ROLES or "tool_calls" in message or "function_call" in message,
    }
    return next((form for form, shown in tells.items() if shown), None)


def is_message(item: JsonValue) -> bool:
    """Whether an item of a list is a message, or an item of the Responses form, rather than a record."""
    if not isinstance(item, dict) or any(name in item for name in (*MESSAGE_LISTS, "request", "runs", "candidates", "choices")):
        return False
    return "role" in item or isinstance(item.get("type"), str) or isinstance(item.get("parts"), list)


def _exchange(request: JsonValue, response: JsonValue, path: str, form: str | None) -> Record | None:
    chosen = form or _form_of(request, response, path)
    if chosen is None:
        return None
    model = _model(request) or _model(response) or text_of(response, "modelVersion") or _model_in(path)
    messages = FORMS[chosen].messages(request, response)
    failure = _failure(response)
    asked = isinstance(field_of(request, _ASKED.get(chosen, "messages")), list | str)
    answered = _by_answer(response) == ("openai-chat" if chosen == "deepseek" else chosen)
    if not messages and not asked and not answered and (failure is None or form is not None):
        return None
    previous = text_of(request, "previous_response_id")
    own = text_of(response, "id") if chosen == "openai-responses" else None
    return Record(chosen, messages, model, failure, own, previous)


def _form_of(request: JsonValue, response: JsonValue, path: str) -> str | None:
    """By the address, else by the fields that only one vendor has, else by the messages."""
    plain = path.partition("?")[0].rstrip("/")
    found = next((name for ending, name in _PATHS if plain.endswith(ending)), None)
    found = found or _by_request(request) or _by_answer(response)
    model = (_model(request) or _model(response) or "").rpartition("/")[2].lower()
    messages = list_of(request, "messages")
    if found in {None, "openai-chat"} and isinstance(field_of(request, "messages"), list):
        shown = _shown_by(messages)
        if found is None:
            likely = "anthropic" if "claude" in model and "max_tokens" in _object(request) else "openai-chat"
            found = shown or likely if form_of_messages(messages) or not messages else None
        elif shown == "deepseek":
            found = shown
    return "deepseek" if found == "openai-chat" and model.startswith("deepseek") else found


def _object(value: JsonValue) -> Message:
    return value if isinstance(value, dict) else {}


def _by_request(request: JsonValue) -> str | None:
    if not isinstance(request, dict):
        return None
    if "contents" in request:
        return "gemini"
    if isinstance(request.get("input"), str | list) and "messages" not in request and "embedding" not in (_model(request) or ""):
        return "openai-responses"
    tools = objects_in(request.get("tools"))
    if "system" in request or "stop_sequences" in request or any("input_schema" in tool for tool in tools):
        return "anthropic"
    return "openai-chat" if any("function" in tool for tool in tools) else None


def _by_answer(response: JsonValue) -> str | None:
    if not isinstance(response, dict):
        return None
    if "candidates" in response or "promptFeedback" in response or "usageMetadata" in response:
        return "gemini"
    if isinstance(response.get("choices"), list):
        return "openai-chat"
    if response.get("object") == "response" or isinstance(response.get("output"), list):
        return "openai-responses"
    if text_of(response, "type") in {"message", "error"} and text_of(response, "role") in {"assistant", None}:
        return "anthropic" if isinstance(response.get("content"), list) or "error" in response else None
    return None


def _is_answer(found: Message) -> bool:
    return not any(name in found for name in ("messages", "input", "contents")) and _by_answer(found) is not None


def _body(value: JsonValue) -> JsonValue:
    inner = field_of(value, "body")
    return inner if isinstance(inner, dict) else value


def _model(value: JsonValue) -> str | None:
    return text_of(value, "model")


def _model_in(path: str) -> str | None:
    name = path.rpartition("/models/")[2].partition(":")[0]
    return name or None


def _failure(response: JsonValue) -> str | None:
    error = field_of(response, "error")
    if error is not None:
        said = error if isinstance(error, str) else text_of(error, "message")
        kind = next((short(text_of(error, name), "") for name in ("type", "status", "code") if text_of(error, name)), "")
        return ": ".join(["The request failed", *filter(None, [kind, said])])
    reason = text_of(field_of(response, "promptFeedback"), "blockReason")
    if reason is not None:
        return ": ".join(
            [
                "The request was blocked",
                short(reason, ""),
                *filter(None, [text_of(field_of(response, "promptFeedback"), "blockReasonMessage")]),
            ]
        )
    return None
