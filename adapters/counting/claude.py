"""Requests to Anthropic's Messages, counted."""

from __future__ import annotations

from typing import cast

from adapters.counting.images import add_image
from adapters.counting.native import Json, as_dict, as_json, as_list, as_text, blocks
from adapters.counting.rules import ClaudeFrame, CountingRule
from adapters.counting.sums import Sum

_SIGNATURE_PER_CHARACTER = 0.75
"""Most tokens that reasoning can have which only a signature or a hidden text tells: a judgement."""


_FORCED = frozenset({"any", "tool"})


def count_messages(counts: Sum, request: Json, rule: CountingRule, frame: ClaudeFrame) -> None:
    """Add a Messages request."""
    messages = [as_dict(message) for message in as_list(request.get("messages"))]
    counts.fixed("framing", frame.request, frame.slack if len(messages) > 1 or request.get("system") else 0)
    for block in blocks(request.get("system")):
        counts.text("content", as_text(block.get("text")))
    before = ""
    last_user = max((at for at, message in enumerate(messages) if _is_question(message)), default=-1)
    for at, message in enumerate(messages):
        role = as_text(message.get("role"))
        if at and role != before:
            counts.fixed("framing", frame.turn, 1)
        before = role
        for block in blocks(message.get("content")):
            _block(counts, block, rule, frame, forgotten=at < last_user)
    _tools(counts, request, frame)
    _settings(counts, request, frame)


def _is_question(message: Json) -> bool:
    """A user's turn that is not only the results of tools: reasoning before it is dropped by the vendor."""
    found = blocks(message.get("content"))
    return message.get("role") == "user" and not any(block.get("type") == "tool_result" for block in found)


def _block(counts: Sum, block: Json, rule: CountingRule, frame: ClaudeFrame, *, forgotten: bool) -> None:
    kind = as_text(block.get("type", "text"))
    if kind == "text":
        counts.text("content", as_text(block.get("text")))
    elif kind == "tool_use":
        counts.text("content", _call(block))
        counts.fixed("framing", frame.call, frame.slack)
    elif kind == "tool_result":
        counts.fixed("framing", frame.result, frame.slack)
        for inner in blocks(block.get("content")):
            _part(counts, inner, rule)
    elif kind == "thinking":
        if not forgotten:
            thought = as_text(block.get("thinking"))
            size = counts.text("content", thought)
            counts.guess(
                "content", 0, -0.2 * size, 0.2 * size + 8 if thought else len(as_text(block.get("signature"))), "reasoning_encrypted"
            )
    elif kind == "redacted_thinking":
        if not forgotten:
            size = len(as_text(block.get("data")))
            counts.guess("content", 0.2 * size, 0, _SIGNATURE_PER_CHARACTER * size, "reasoning_encrypted")
    else:
        _part(counts, block, rule)


def _part(counts: Sum, block: Json, rule: CountingRule) -> None:
    """What may stand in a turn as well as in a tool's result."""
    kind = as_text(block.get("type", "text"))
    source = as_dict(block.get("source"))
    if kind == "text":
        counts.text("content", as_text(block.get("text")))
    elif kind == "image":
        add_image(counts, rule.image, as_text(source.get("data")) or "http")
    elif kind == "search_result":
        counts.text("content", f"{as_text(block.get('title'))}\n{as_text(block.get('source'))}\n")
        for inner in blocks(block.get("content")):
            counts.text("content", as_text(inner.get("text")))
        counts.guess("framing", 10, 0, 80, "block_of_the_vendor")
    elif kind == "document" and as_text(source.get("type")) in {"text", "content"}:
        for inner in blocks(source.get("data", source.get("content"))):
            counts.text("content", as_text(inner.get("text")))
        counts.text("content", f"{as_text(block.get('title'))}{as_text(block.get('context'))}")
        counts.guess("framing", 20, 0, 100, "block_of_the_vendor")
    elif kind in {"document", "container_upload"}:
        counts.guess("content", 2_000, 0, 50_000, "file_not_read")
    else:
        size = len(as_json(block))
        counts.guess("content", size / 4, 0, size, "block_of_the_vendor")


def _call(block: Json) -> str:
    """A call as a model of this family writes it: each argument under its name, texts as they are and the rest as JSON."""
    arguments = as_dict(block.get("input"))
    lines = [f'<invoke name="{as_text(block.get("name"))}">']
    lines += [
        f'<parameter name="{name}">{value if isinstance(value, str) else as_json(value)}</parameter>' for name, value in arguments.items()
    ]
    return "\n".join([*lines, "</invoke>", ""])


def _tools(counts: Sum, request: Json, frame: ClaudeFrame) -> None:
    tools = [as_dict(tool) for tool in as_list(request.get("tools"))]
    if not tools:
        return
    choice = as_text(as_dict(request.get("tool_choice")).get("type"))
    hidden = frame.tools_any if choice in _FORCED else frame.tools_auto
    counts.fixed("tools", hidden + (frame.tools_named if choice == "tool" else 0), frame.slack_tools)
    for tool in tools:
        if "input_schema" not in tool:
            counts.guess("tools", 500, 0, 5_000, "tool_of_the_vendor")
        elif not tool.get("defer_loading"):
            shown = {"description": tool.get("description"), "name": tool.get("name"), "parameters": tool.get("input_schema")}
            counts.text("tools", f"<function>{as_json({key: value for key, value in shown.items() if value})}</function>\n")
            counts.fixed("tools", frame.tool)


def _settings(counts: Sum, request: Json, frame: ClaudeFrame) -> None:
    thinking = as_dict(request.get("thinking")).get("type")
    if as_text(as_dict(request.get("tool_choice")).get("type")) in _FORCED:
        thinking = None  # the vendor leaves its words on thinking out when a tool is forced (one recorded request)
    if thinking == "enabled":
        counts.fixed("framing", frame.thinking, frame.slack)
    elif thinking == "adaptive":
        counts.fixed("framing", frame.adaptive, frame.slack)
    schema = as_dict(as_dict(request.get("output_config")).get("format")).get("schema")
    if isinstance(schema, dict):
        counts.text("tools", as_json(as_dict(cast("object", schema))))
        counts.guess("tools", frame.format, frame.format - 60, frame.format + 60, "answer_schema")
    if request.get("mcp_servers") or request.get("container"):
        counts.guess("tools", 0, 0, 20_000, "kept_by_the_vendor")
