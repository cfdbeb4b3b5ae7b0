"""Requests to Google's generateContent, counted."""

from __future__ import annotations

from adapters.counting.gemini_functions import QUOTE, declaration, python_function, schema_of, value, without_quote
from adapters.counting.images import add_image
from adapters.counting.native import Json, as_dict, as_json, as_list, as_text, camel_keys, leaves
from adapters.counting.rules import CountingRule, GeminiFrame
from adapters.counting.sums import Sum

_SIGNATURE_PER_BYTE = 0.28
_SIGNATURE_BEFORE = 20
_SIGNATURE_ERROR = 0.12
_SIGNATURE_SLACK = 20
"""Tokens of reasoning from the bytes of its signature: a line through 190 recorded answers, 155 to 9,500 bytes, 26 to 2,700 tokens."""

_UNROLLED_ERROR = 0.25
"""Of what a schema that refers to itself costs; one recorded schema was missed by 4 %. The bound is a judgement."""

_SECOND_OF_AUDIO = 32
_BYTES_A_SECOND = 16_000
"""Audio costs 32 tokens a second (the vendor's words); its length is guessed at 128 kbit/s."""


def count_generate_content(counts: Sum, request: Json, rule: CountingRule, frame: GeminiFrame) -> None:
    """Add a generateContent request, in either spelling of its keys."""
    request = camel_keys(request)
    system = as_dict(request.get("systemInstruction"))
    contents = request.get("contents")
    turns = [{"parts": [{"text": contents}]}] if isinstance(contents, str) else [as_dict(turn) for turn in as_list(contents)]
    for turn in [system, *turns]:
        for part in as_list(turn.get("parts")):
            _part(counts, camel_keys(as_dict(part)), rule, frame)
    counts.fixed("framing", 0, frame.slack)
    definitions: list[Json] = []
    for tool in (camel_keys(as_dict(each)) for each in as_list(request.get("tools"))):
        definitions += [camel_keys(as_dict(each)) for each in as_list(tool.get("functionDeclarations"))]
        if set(tool) - {"functionDeclarations"}:
            counts.guess("tools", 50, 0, 2_000, "tool_of_the_vendor")
    if definitions:
        _tools(counts, definitions, frame)
        if system:
            counts.fixed("tools", frame.system)
    if request.get("cachedContent"):
        counts.guess("content", 0, 0, 1_000_000, "kept_by_the_vendor")
    if as_dict(request.get("generationConfig")).get("responseSchema"):
        size = len(as_json(as_dict(request["generationConfig"])["responseSchema"]))
        counts.guess("tools", size / 8, 0, size / 3, "answer_schema")


def _part(counts: Sum, part: Json, rule: CountingRule, frame: GeminiFrame) -> None:
    if frame.thoughts and isinstance(part.get("thoughtSignature"), str):
        _thoughts(counts, part["thoughtSignature"])
    if isinstance(part.get("text"), str):
        if not part.get("thought"):
            counts.text("content", part["text"])
    elif "functionCall" in part:
        call = as_dict(part["functionCall"])
        _exchange(counts, "call", call, call.get("args"), frame)
        counts.fixed("framing", frame.call, frame.slack_call)
    elif "functionResponse" in part:
        response = as_dict(part["functionResponse"])
        _exchange(counts, "response", response, response.get("response"), frame)
        counts.fixed("framing", frame.result, frame.slack_call)
        for inner in as_list(response.get("parts")):
            _file(counts, camel_keys(as_dict(inner)), rule)
    else:
        _file(counts, part, rule)


def _exchange(counts: Sum, word: str, given: Json, said: object, frame: GeminiFrame) -> None:
    name = as_text(given.get("name"))
    if frame.style == "declaration":
        text = f"{word}:{without_quote(name)}{value(as_dict(said))}"
        counts.text("content", text.replace(QUOTE, ""))
        counts.fixed("content", text.count(QUOTE))
    elif frame.style == "python":
        counts.text("content", name)
        counts.text("content", as_json(said or {}))
    else:
        counts.text("content", name)
        for text in leaves(said):
            counts.text("content", text)


def _tools(counts: Sum, definitions: list[Json], frame: GeminiFrame) -> None:
    counts.fixed("tools", frame.tools)
    for definition in definitions:
        counts.fixed("tools", 0, frame.slack_tool)
        if frame.style == "python":
            shown = python_function(definition)
            size = counts.text("tools", shown.text)
            if shown.unrolled:
                counts.guess("tools", 0, -_UNROLLED_ERROR * size, _UNROLLED_ERROR * size, "schema_refers_to_itself")
        elif frame.style == "declaration":
            # Two special tokens around it, and one for each quote; what stands between them is encoded piece by piece.
            text = declaration(definition)
            counts.fixed("tools", 2 + text.count(QUOTE))
            for piece in text.split(QUOTE):
                counts.text("tools", piece)
        else:
            _texts(counts, definition)


def _texts(counts: Sum, definition: Json) -> None:
    """Names and descriptions alone, down through the schema level by level."""
    counts.text("tools", as_text(definition.get("name")))
    counts.text("tools", as_text(definition.get("description")))
    level = [schema_of(definition)]
    while level:
        deeper: list[Json] = []
        for schema in level:
            counts.text("tools", as_text(schema.get("description")))
            for name, inner in as_dict(schema.get("properties")).items():
                counts.text("tools", name)
                counts.fixed("tools", 2, 2)
                deeper.append(as_dict(inner))
            deeper += [as_dict(schema[key]) for key in ("items",) if isinstance(schema.get(key), dict)]
            deeper += [as_dict(item) for item in as_list(schema.get("anyOf"))]
        level = deeper


def _thoughts(counts: Sum, signature: str) -> None:
    """The reasoning that a signature stands for; the short ones that others put in its place stand for none."""
    tokens = max(_SIGNATURE_PER_BYTE * len(signature) * 3 / 4 - _SIGNATURE_BEFORE, 0)
    if tokens:
        slack = _SIGNATURE_ERROR * tokens + _SIGNATURE_SLACK
        counts.guess("content", tokens, max(tokens - slack, 0), tokens + slack, "reasoning_encrypted")


def _file(counts: Sum, part: Json, rule: CountingRule) -> None:
    data = camel_keys(as_dict(part.get("inlineData")))
    kind = as_text(data.get("mimeType")) or as_text(camel_keys(as_dict(part.get("fileData"))).get("mimeType"))
    encoded = as_text(data.get("data"))
    if kind.startswith("image/"):
        add_image(counts, rule.image, encoded or "http")
    elif kind.startswith("audio/") and encoded:
        seconds = len(encoded) * 3 / 4 / _BYTES_A_SECOND
        counts.guess("content", _SECOND_OF_AUDIO * seconds, 0, 10 * _SECOND_OF_AUDIO * seconds + _SECOND_OF_AUDIO, "file_not_read")
    elif kind or encoded:
        counts.guess("content", 1_000, 0, 100_000, "file_not_read")
    elif part:
        text = as_json({key: item for key, item in part.items() if key != "thoughtSignature"})
        counts.guess("content", len(text) / 4, 0, len(text), "part_of_the_vendor")
