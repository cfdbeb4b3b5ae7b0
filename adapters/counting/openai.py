"""Requests to OpenAI's two endpoints, and to those that speak Chat Completions, counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from adapters.counting.images import add_image
from adapters.counting.native import Json, as_dict, as_json, as_list, as_text, blocks
from adapters.counting.openai_functions import rendered
from adapters.counting.rules import CountingRule, OpenAiFrame
from adapters.counting.sums import Sum

_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text", "refusal"})
_SYSTEM = frozenset({"system", "developer"})

_REASONING_PER_CHARACTER = 0.16
_REASONING_BEFORE = 165
_REASONING_SLACK = 110
"""Tokens of encrypted reasoning from its base64 characters: a line through 40 recorded answers, 1,250 to 16,400 characters, 64 to 2,500 tokens."""

_FILE = (0, 20_000)
_FILE_VALUE = 1_000
"""A file's tokens are not known without reading it: bounds are a judgement."""


def count_chat(counts: Sum, request: Json, rule: CountingRule, frame: OpenAiFrame) -> None:
    """Add a Chat Completions request."""
    counts.fixed("framing", frame.request)
    messages = [as_dict(message) for message in as_list(request.get("messages"))]
    for message in messages:
        _message(counts, message, rule, frame)
        calls = [as_dict(call) for call in as_list(message.get("tool_calls"))]
        legacy = as_dict(message.get("function_call"))
        if legacy:
            calls.append({"function": legacy})
        for call in calls:
            function = as_dict(call.get("function") or call.get("custom"))
            _call(counts, function, frame)
            if len(calls) > 1:
                counts.fixed("framing", frame.parallel, frame.slack_call)
        if as_text(message.get("role")) in {"tool", "function"}:
            counts.fixed("framing", frame.result, frame.slack_call)
    named = {"system", "developer"} & {as_text(message.get("role")) for message in messages}
    functions = [as_dict(as_dict(tool).get("function")) for tool in as_list(request.get("tools"))]
    functions += [as_dict(function) for function in as_list(request.get("functions"))]
    other = sum(1 for tool in as_list(request.get("tools")) if as_dict(tool).get("type", "function") != "function")
    _tools(counts, [function for function in functions if function], frame, alone=not named)
    if other:
        counts.guess("tools", 150 * other, 0, 1_000 * other, "tool_of_the_vendor")
    _format(counts, as_dict(as_dict(request.get("response_format")).get("json_schema")), frame)


def count_responses(counts: Sum, request: Json, rule: CountingRule, frame: OpenAiFrame) -> None:
    """Add a Responses request. What the vendor keeps (a previous response, a conversation, a prompt) is not in it, and noted."""
    counts.fixed("framing", frame.request)
    instructions = as_text(request.get("instructions"))
    alone = not instructions
    if instructions:
        counts.fixed("framing", frame.message)
        counts.text("content", instructions)
    given = request.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else [as_dict(item) for item in as_list(given)]
    last_user = max((at for at, item in enumerate(items) if item.get("role") == "user"), default=-1)
    for at, item in enumerate(items):
        kind = as_text(item.get("type", "message"))
        if kind == "message":
            alone = alone and as_text(item.get("role")) not in _SYSTEM
            _message(counts, item, rule, frame)
        elif kind in {"function_call", "custom_tool_call"}:
            counts.fixed("framing", frame.message)
            _call(counts, {"name": item.get("name"), "arguments": item.get("arguments", item.get("input"))}, frame)
        elif kind in {"function_call_output", "custom_tool_call_output"}:
            counts.fixed("framing", frame.message)
            counts.fixed("framing", frame.result, frame.slack_call)
            _content(counts, item.get("output"), rule)
        elif kind == "reasoning":
            _reasoning(counts, item, forgotten=at < last_user)
        else:
            size = len(as_json(item))
            counts.guess("content", size / 5, 0, size, "item_of_the_vendor")
    if frame.calls_at_once and _has_calls_at_once(items):
        counts.guess("framing", 0, 0, frame.calls_at_once, "calls_at_once")
    functions = [as_dict(tool) for tool in as_list(request.get("tools"))]
    own = [tool for tool in functions if tool.get("type", "function") == "function"]
    _tools(counts, own, frame, alone=alone)
    if len(own) < len(functions):
        others = len(functions) - len(own)
        counts.guess("tools", 150 * others, 0, 2_000 * others, "tool_of_the_vendor")
    shape = as_dict(as_dict(request.get("text")).get("format"))
    _format(counts, shape if shape.get("type") == "json_schema" else {}, frame)
    if request.get("previous_response_id") or request.get("conversation") or request.get("prompt"):
        counts.guess("content", 0, 0, 100_000, "kept_by_the_vendor")


def _has_calls_at_once(items: list[Json]) -> bool:
    return any(first.get("type") == second.get("type") == "function_call" for first, second in pairwise(items))


def _message(counts: Sum, message: Json, rule: CountingRule, frame: OpenAiFrame) -> None:
    counts.fixed("framing", frame.message)
    if message.get("role") == "assistant" and message.get("content"):
        counts.fixed("framing", frame.assistant, frame.slack_call if frame.assistant else 0)
    name = as_text(message.get("name"))
    if name and as_text(message.get("role")) not in {"tool", "function"}:
        counts.fixed("framing", frame.name)
        counts.text("framing", name)
    _content(counts, message.get("content"), rule)


def _content(counts: Sum, content: object, rule: CountingRule) -> None:
    for block in blocks(content):
        kind = as_text(block.get("type", "text"))
        if kind in _TEXTS:
            counts.text("content", as_text(block.get("text", block.get("refusal"))))
        elif kind in {"image_url", "input_image"}:
            given = block.get("image_url")
            nested = as_dict(given)
            address = as_text(nested.get("url")) if nested else as_text(given)
            detail = nested.get("detail") if nested else block.get("detail")
            add_image(counts, rule.image, address or "http", low_detail=detail == "low")
        else:
            counts.guess("content", _FILE_VALUE, *_FILE, "file_not_read")


def _call(counts: Sum, function: Json, frame: OpenAiFrame) -> None:
    name = as_text(function.get("name"))
    counts.text("framing", name)
    # The result says again whose it is: functions.NAME.
    counts.text("framing", f"functions.{name}")
    counts.fixed("framing", frame.call, frame.slack_call)
    arguments = function.get("arguments", function.get("input"))
    counts.text("content", arguments if isinstance(arguments, str) else as_json(arguments or {}))


def _tools(counts: Sum, definitions: Sequence[Json], frame: OpenAiFrame, *, alone: bool) -> None:
    found = rendered(definitions, comment_each_line=frame.comment_each_line)
    if not found.tools:
        return
    counts.text("tools", found.text)
    beside = frame.tool * found.tools + frame.comment * found.comments + frame.properties * found.with_properties
    counts.fixed("tools", frame.tools + beside + (frame.tools_alone if alone else 0), frame.slack_tools + frame.slack_tool * found.tools)


def _format(counts: Sum, shape: Json, frame: OpenAiFrame) -> None:
    if "schema" not in shape:
        return
    text = as_json(as_dict(shape["schema"]))
    size = (
        counts.text("tools", text)
        + counts.text("tools", as_text(shape.get("name")))
        + counts.text("tools", as_text(shape.get("description")))
    )
    counts.guess("tools", frame.format, -0.3 * size - 20, 0.3 * size + 60, "answer_schema")


def _reasoning(counts: Sum, item: Json, *, forgotten: bool) -> None:
    """Reasoning before the last message of the user's is dropped by the vendor; what is encrypted can be guessed from its length."""
    if forgotten:
        return
    characters = len(as_text(item.get("encrypted_content")))
    value = max(_REASONING_PER_CHARACTER * characters - _REASONING_BEFORE, 0)
    if characters:
        counts.guess("content", value, max(0.85 * value - _REASONING_SLACK, 0), 1.15 * value + _REASONING_SLACK, "reasoning_encrypted")
    elif as_text(item.get("id")):
        counts.guess("content", 0, 0, 10_000, "kept_by_the_vendor")
