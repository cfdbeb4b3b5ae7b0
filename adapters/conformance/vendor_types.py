"""Whether the vendor's own types accept a payload. SDKs are imported when first asked for; without one the answer is that nobody checked."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from graph.model.answer import Rendered

Validate = Callable[[dict[str, Any]], Iterator[str]]


class NotChecked(Exception):
    """No types to check by; the message says which package would bring them."""


def check_types(rendered: Rendered) -> Iterator[str]:
    """What the vendor's types find wrong with a payload.

    Raises:
        NotChecked: no types of the API are known, or its SDK is not installed.
    """
    yield from validator(rendered.api)(rendered.payload)


@lru_cache(maxsize=32)
def validator(api: str) -> Validate:
    """The check for an API by its name; raises NotChecked."""
    if api.endswith("chat.completions"):
        # DeepSeek and others that speak OpenAI's form have fields of their own, which OpenAI's SDK sends as extra_body.
        extras = frozenset[str]() if api.startswith("openai.") else frozenset({"thinking", "reasoning_content", "extra_body"})
        return _typed("openai.types.chat.completion_create_params", "CompletionCreateParamsNonStreaming", "openai", extras)
    if api.endswith("responses"):
        return _responses(_typed("openai.types.responses.response_create_params", "ResponseCreateParamsNonStreaming", "openai"))
    if api.startswith("anthropic."):
        return _typed("anthropic.types.message_create_params", "MessageCreateParamsNonStreaming", "anthropic")
    if "generate_content" in api.lower() or "generatecontent" in api.lower():
        return _google()
    raise NotChecked(f"no types are known for the API {api}")


def _module(name: str, package: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise NotChecked(f"the package {package} is not installed") from None


def _typed(module: str, name: str, package: str, extras: frozenset[str] = frozenset()) -> Validate:
    adapter: TypeAdapter[Any] = TypeAdapter(getattr(_module(module, package), name))

    def check(payload: dict[str, Any]) -> Iterator[str]:
        sent = _without(payload, extras)
        try:
            accepted = drained(adapter.validate_python(sent))
        except ValidationError as failure:
            yield from _told(failure)
            return
        # The types drop keys that they do not know without a word; a vendor refuses them.
        if accepted != sent:
            yield f"{package}'s types do not know a part of the payload"

    return check


def _responses(typed: Validate) -> Validate:
    """With what the types let pass and the vendor refuses: an output without the id of its call."""

    def check(payload: dict[str, Any]) -> Iterator[str]:
        yield from typed(payload)
        items = payload.get("input")
        for item in cast("list[Any]", items) if isinstance(items, list) else []:
            if isinstance(item, Mapping):
                told = cast("Mapping[str, Any]", item)
                if told.get("type") in {"function_call", "function_call_output"} and not told.get("call_id"):
                    yield f"a {told['type']} has no call_id"

    return check


def _google() -> Validate:
    types = _module("google.genai.types", "google-genai")
    content: Any = types.Content
    # The REST form has these beside the contents; the SDK has them in its config.
    beside = {"systemInstruction", "system_instruction", "tools", "toolConfig", "tool_config"}
    inside = {"generationConfig", "generation_config", "config"}

    def check(payload: dict[str, Any]) -> Iterator[str]:
        config = {key: value for key, value in payload.items() if key in beside}
        for key in inside & set(payload):
            config |= payload[key]
        unknown = set(payload) - beside - inside - {"contents", "model"}
        if unknown:
            yield f"the request has fields that generateContent does not: {', '.join(sorted(unknown))}"
        try:
            read = [content.model_validate(each) for each in payload.get("contents") or ()]
            types.GenerateContentConfig.model_validate(config)
        except ValidationError as failure:
            yield from _told(failure)
            return
        for each in read:
            if each.role not in {"user", "model"}:
                yield "a content has another role than user or model"

    return check


def _told(failure: ValidationError) -> Iterator[str]:
    """Where and what, without the value: it is somebody's content."""
    for error in failure.errors(include_input=False, include_url=False, include_context=False)[:3]:
        where = ".".join(str(part) for part in error["loc"][:8])
        yield f"refused at {where}: {error['type']}"


def _without(value: Any, extras: frozenset[str]) -> Any:
    """The payload without fields of that name, at any depth that a request has them: the request itself and its messages."""
    if not extras:
        return value
    kept = {key: inner for key, inner in cast("dict[str, Any]", value).items() if key not in extras}
    messages = kept.get("messages")
    if isinstance(messages, list):
        kept["messages"] = [
            {key: inner for key, inner in cast("dict[str, Any]", message).items() if key not in extras}
            for message in cast("list[Any]", messages)
        ]
    return kept


def drained(value: Any) -> Any:
    """The accepted payload with its lazy iterables read, which is when pydantic checks what is in them."""
    if isinstance(value, dict):
        return {key: drained(inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        return value
    return [drained(inner) for inner in cast("Iterable[Any]", value)]
