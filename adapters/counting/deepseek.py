"""Requests to DeepSeek, counted: Chat Completions whose tools stand as JSON in the system prompt."""

from __future__ import annotations

import json

from adapters.counting.images import add_image
from adapters.counting.native import Json, as_dict, as_json, as_list, as_text, blocks
from adapters.counting.rules import CountingRule, DeepSeekFrame
from adapters.counting.sums import Sum


def count_deepseek(counts: Sum, request: Json, rule: CountingRule, frame: DeepSeekFrame) -> None:
    """Add a request to DeepSeek's chat endpoint."""
    counts.fixed("framing", frame.request, frame.slack)
    before = ""
    for message in (as_dict(each) for each in as_list(request.get("messages"))):
        role = as_text(message.get("role"))
        if role == "tool":
            # Results of one turn stand together in one block.
            counts.fixed("framing", frame.result + (frame.results if before != "tool" else 0), frame.slack_call)
        else:
            counts.fixed("framing", frame.message)
        before = role
        counts.text("content", as_text(message.get("reasoning_content")))
        for block in blocks(message.get("content")):
            if block.get("type", "text") == "text":
                counts.text("content", as_text(block.get("text")))
            else:
                add_image(counts, rule.image, as_text(as_dict(block.get("image_url")).get("url")) or "http")
        calls = [as_dict(as_dict(call).get("function")) for call in as_list(message.get("tool_calls"))]
        if calls:
            counts.fixed("framing", frame.calls, frame.slack_call)
        for call in calls:
            _call(counts, call, frame)
    functions = [as_dict(as_dict(tool).get("function")) for tool in as_list(request.get("tools"))]
    if functions:
        counts.fixed("tools", frame.tools, frame.slack_tools)
    for function in functions:
        counts.text("tools", as_json(function))
        counts.fixed("tools", frame.tool)


def _call(counts: Sum, call: Json, frame: DeepSeekFrame) -> None:
    counts.text("framing", as_text(call.get("name")))
    counts.fixed("framing", frame.call, frame.slack_call)
    given = as_text(call.get("arguments"))
    try:
        arguments = json.loads(given)
    except (ValueError, RecursionError):
        counts.text("content", given)
        return
    for name, value in as_dict(arguments).items():
        counts.text("content", name)
        counts.text("content", value if isinstance(value, str) else as_json(value))
        counts.fixed("framing", frame.parameter)
