"""Whole native requests counted: parts that add up, bounds that hold, hostile requests that cost bounded work."""

from __future__ import annotations

import base64
import json
import struct
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters import packaged_tokenizers
from adapters.counting import CountedRequest, Service, count_request, count_text
from adapters.counting.gemini_functions import declaration, python_function
from adapters.counting.images import Size, size_of, tokens_of
from adapters.counting.openai_functions import rendered
from adapters.counting.request import NOTES
from adapters.counting.rules import families, rule_for
from adapters.packaged_tokenizers import DEEPSEEK, GEMMA
from adapters.tokenizers import ByteCounter, Tokenizers
from graph.model.answer import CountMethod
from graph.model.errors import InvalidField, InvalidJson, UnknownModel

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FOX = "The quick brown fox jumps over the lazy dog."


@pytest.fixture(scope="module")
def tokenizers() -> Tokenizers:
    return Tokenizers(ctok=False)


def chat(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"messages": list(messages), **fields}


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def function(name: str = "read_lamp", description: str = "Read a lamp.", parameters: object = SCHEMA) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def checked(counted: CountedRequest) -> CountedRequest:
    tokens = counted.tokens
    assert tokens.parts.content + tokens.parts.framing + tokens.parts.tools == tokens.value
    assert 0 <= tokens.low <= tokens.value <= tokens.high
    assert set(counted.notes) <= NOTES.keys()
    return counted


@pytest.mark.parametrize(
    ("model", "request_", "value", "content"),
    [
        # 3 a request, 3 a message and 1 its role: the cookbook's numbers.
        ("gpt-4o", chat({"role": "system", "content": FOX}, user(FOX)), 31, 20),
        ("gpt-5.2", chat(user(FOX)), 16, 10),
        ("openai/gpt-5-mini", {"input": FOX}, 16, 10),
        ("gpt-4.1", {"instructions": FOX, "input": [user(FOX)]}, 31, 20),
        ("gemini-2.5-pro", {"contents": [{"role": "user", "parts": [{"text": FOX}]}]}, 10, 10),
        ("gemini-3-flash", {"contents": [{"parts": [{"text": FOX}]}], "system_instruction": {"parts": [{"text": FOX}]}}, 20, 20),
        ("deepseek-chat", chat(user(FOX)), 14, 10),
    ],
)
def test_texts_cost_their_tokens_and_the_frame(
    tokenizers: Tokenizers, model: str, request_: dict[str, Any], value: int, content: int
) -> None:
    tokens = checked(count_request(model, request_, tokenizers)).tokens
    assert (tokens.value, tokens.parts.content, tokens.parts.tools) == (value, content, 0)
    assert tokens.method in {CountMethod.EXACT, CountMethod.CALIBRATED}


def test_gpt_texts_alone_are_exact(tokenizers: Tokenizers) -> None:
    tokens = count_text("gpt-5.2", FOX, tokenizers).tokens
    assert (tokens.method, tokens.low, tokens.high) == (CountMethod.EXACT, tokens.value, tokens.value)


def test_functions_are_shown_to_gpt_as_a_typescript_namespace() -> None:
    parameters = {
        "type": "object",
        "properties": {
            "unit": {"enum": ["lux", 1, None], "description": "Which\none"},
            "at": {"type": "object", "properties": {"x": {"type": "number", "default": 0}}},
            "many": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": ["integer", "null"]}]}},
        },
        "required": ["unit"],
    }
    found = rendered([{"name": "read_lamp", "description": "Read.", "parameters": parameters}, {"name": "ping"}], comment_each_line=True)
    assert found.text == (
        "# Tools\n\n## functions\n\nnamespace functions {\n\n// Read.\ntype read_lamp = (_: {\n// Which\n// one\n"
        'unit: "lux" | 1 | null,\nat?: {\nx?: number, // default: 0\n},\nmany?: string | number | null[],\n}) => any;\n\n'
        "type ping = () => any;\n\n} // namespace functions"
    )
    assert (found.tools, found.comments, found.with_properties) == (2, 2, 1)


def test_functions_are_shown_to_gemini_as_python_and_as_declarations() -> None:
    definition = {"name": "move", "description": "Go.", "parameters": {"type": "OBJECT", "properties": {"to": SCHEMA}, "required": ["to"]}}
    assert python_function(definition).text == (
        '@dataclasses.dataclass(kw_only=True)\nclass MoveTo:\n  """\n\n  Attributes:\n    city: \n  """\n  city: str\n\n\n'
        'def move(\n    to: MoveTo,\n) -> dict:\n  """Go.\n\n  Args:\n    to: \n  """\n\n'
    )
    assert declaration({"name": "ping", "parametersJsonSchema": SCHEMA}).replace("\ue000", "'") == (
        "declaration:ping{parameters:{properties:{city:{type:'STRING'}},required:['city'],type:'OBJECT'}}"
    )


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5.2", "deepseek-chat", "claude-sonnet-4-5", "gemini-2.5-flash", "gemini-3-flash"])
def test_tools_calls_and_results_cost_more_each(tokenizers: Tokenizers, model: str) -> None:
    def total(tools: int, calls: int) -> int:
        request: dict[str, Any]
        names = [f"read_lamp_{number}" for number in range(tools)]
        if model.startswith("claude"):
            said = [user(FOX)]
            for number in range(calls):
                said.append(
                    {"role": "assistant", "content": [{"type": "tool_use", "id": f"c{number}", "name": "read_lamp", "input": {"a": 1}}]}
                )
                said.append(user([{"type": "tool_result", "tool_use_id": f"c{number}", "content": "bright"}]))
            request = {"messages": said, "tools": [{"name": name, "description": FOX, "input_schema": SCHEMA} for name in names]}
        elif model.startswith("gemini"):
            turns: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": FOX}]}]
            for _ in range(calls):
                turns.append({"role": "model", "parts": [{"functionCall": {"name": "read_lamp", "args": {"a": 1}}}]})
                turns.append({"role": "user", "parts": [{"functionResponse": {"name": "read_lamp", "response": {"output": "bright"}}}]})
            declared = [{"name": name, "description": FOX, "parametersJsonSchema": SCHEMA} for name in names]
            request = {"contents": turns, "tools": [{"functionDeclarations": declared}]}
        else:
            said = [user(FOX)]
            for number in range(calls):
                call = {"id": f"c{number}", "type": "function", "function": {"name": "read_lamp", "arguments": '{"a":1}'}}
                said.append({"role": "assistant", "content": None, "tool_calls": [call]})
                said.append({"role": "tool", "tool_call_id": f"c{number}", "content": "bright"})
            request = chat(*said, tools=[function(name, FOX) for name in names])
        return checked(count_request(model, request, tokenizers)).tokens.value

    counts = [[total(tools, calls) for calls in range(3)] for tools in range(3)]
    for row in counts:
        assert row == sorted(set(row))
        assert row[2] - row[1] == pytest.approx(row[1] - row[0], abs=2)
    for column in zip(*counts, strict=True):
        assert list(column) == sorted(set(column))


def test_claudes_hidden_prompt_depends_on_the_choice_of_tools(tokenizers: Tokenizers) -> None:
    tool = {"name": "read_lamp", "input_schema": SCHEMA}
    by_choice = {
        choice: count_request(
            "claude-opus-4-6", {**chat(user("x"), tools=[tool]), "tool_choice": {"type": choice}}, tokenizers
        ).tokens.value
        for choice in ("auto", "none", "any")
    }
    # 497 and 589 tokens by the vendor's list.
    assert by_choice["any"] - by_choice["auto"] == pytest.approx(589 - 497, abs=1)
    assert by_choice["none"] == by_choice["auto"]
    deferred = chat(user("x"), tools=[tool, {**tool, "name": "later", "defer_loading": True}])
    assert count_request("claude-opus-4-6", deferred, tokenizers).tokens.value == by_choice["auto"]


def test_claude_is_calibrated_and_what_repeats_itself_has_wide_bounds(tokenizers: Tokenizers) -> None:
    varied = " ".join(f"{word}{number}" for number in range(400) for word in ("lamp", "river", "order", "stone"))
    repeated = FOX * 300
    widths: list[float] = []
    for text in (varied, repeated):
        tokens = checked(count_text("claude-sonnet-4-5", text, tokenizers)).tokens
        assert tokens.method is CountMethod.CALIBRATED
        widths.append((tokens.high - tokens.low) / tokens.value)
    assert widths[0] < widths[1] < 0.35


def test_vertex_charges_less_for_the_same(tokenizers: Tokenizers) -> None:
    request = {"contents": [{"parts": [{"text": FOX}]}], "tools": [{"functionDeclarations": [{"name": "a", "parameters": SCHEMA}]}]}
    there = count_request("gemini-3-flash", request, tokenizers, service=Service.VERTEX).tokens
    assert there.value < count_request("gemini-3-flash", request, tokenizers).tokens.value


def test_without_tokenizers_all_is_an_estimate_that_says_so() -> None:
    nothing = Tokenizers(sources=[], ctok=False, packaged=False)
    for model, request in (
        ("gpt-5.2", chat(user(FOX))),
        ("claude-opus-4-8", chat(user(FOX))),
        ("gemini-3-flash", {"contents": [{"parts": [{"text": FOX}]}]}),
        ("deepseek-chat", chat(user(FOX))),
    ):
        counted = checked(count_request(model, request, nothing))
        assert counted.tokens.method is CountMethod.ESTIMATE
        assert "no_tokenizer" in counted.notes
        exact = count_request(model, request, Tokenizers(ctok=False)).tokens.value
        assert counted.tokens.low <= exact <= counted.tokens.high


def test_a_model_that_no_rule_lists_is_told(tokenizers: Tokenizers) -> None:
    new = count_request("gpt-9-turbo", chat(user(FOX)), tokenizers)
    assert new.notes == ["model_not_listed"]
    assert new.tokens.method is CountMethod.CALIBRATED
    other = checked(count_request("some-llama-70b", chat(user(FOX), tools=[function()]), tokenizers))
    assert other.tokens.method is CountMethod.ESTIMATE
    assert other.notes == ["model_not_listed"]
    with pytest.raises(UnknownModel):
        count_request("some-llama-70b", {"contents": []}, tokenizers)
    with pytest.raises(UnknownModel):
        count_text("m" * 100_000, FOX, tokenizers)
    with pytest.raises(InvalidField):
        count_request("claude-opus-4-8", {"contents": []}, tokenizers)


def test_every_rule_has_a_frame_and_numbers_that_make_sense() -> None:
    frames = ("chat", "responses", "claude", "gemini", "deepseek")
    for family in families():
        for rule in (*family.models, family.default):
            assert any(getattr(rule, frame) is not None for frame in frames), rule.name
            assert rule.source
            if rule.text.weights:
                assert rule.text.error_one >= rule.text.error_many > 0
    found = {
        model: rule_for(model)
        for model in ("gpt-4o-mini-2024-07-18", "o3", "anthropic/claude-opus-4.8", "models/gemini-3.6-flash", "llama")
    }
    assert {model: rule.rule.name if rule else None for model, rule in found.items()} == {
        "gpt-4o-mini-2024-07-18": "GPT-4o mini",
        "o3": "GPT-5, o-series",
        "anthropic/claude-opus-4.8": "Claude Opus 4.8",
        "models/gemini-3.6-flash": "Gemini 3",
        "llama": None,
    }


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 1024, 512) + bytes(8)
GIF = b"GIF89a" + struct.pack("<HH", 30, 40) + bytes(8)
JPEG = b"\xff\xd8\xff\xe0\x00\x04\0\0\xff\xc0\x00\x11\x08" + struct.pack(">HH", 480, 640) + bytes(8)
WEBP = b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (99).to_bytes(3, "little") + (49).to_bytes(3, "little")


@pytest.mark.parametrize(
    ("raw", "size"),
    [
        (PNG, (1024, 512)),
        (GIF, (30, 40)),
        (JPEG, (640, 480)),
        (WEBP, (100, 50)),
        (PNG[:18], None),
        (b"\xff\xd8" + b"\xff\xe0\x00\x00" * 9, None),
        (b"", None),
        (b"GIF89a\0\0\0\0", None),
    ],
)
def test_the_size_of_an_image_is_read_from_its_first_bytes(raw: bytes, size: tuple[int, int] | None) -> None:
    assert size_of(base64.b64encode(raw).decode()) == size


def test_images_are_counted_by_the_published_rules(tokenizers: Tokenizers) -> None:
    found = rule_for("gpt-4o")
    assert found is not None
    assert found.rule.image is not None
    # 1024 x 1024: 4 tiles of 170 and 85; the example that the vendor's guide gives.
    assert tokens_of(found.rule.image, Size(1024, 1024)) == 765
    assert tokens_of(found.rule.image, Size(1024, 1024), low_detail=True) == 85
    address = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    counted = checked(count_request("gpt-4o", chat(user([{"type": "image_url", "image_url": {"url": address}}])), tokenizers))
    assert counted.notes == ["image_by_rule"]
    assert counted.tokens.method is CountMethod.ESTIMATE
    away = checked(
        count_request("gpt-4o", chat(user([{"type": "image_url", "image_url": {"url": "https://example.test/a.png"}}])), tokenizers)
    )
    assert away.notes == ["image_size_unknown"]


@pytest.mark.parametrize(
    ("model", "request_", "note"),
    [
        ("gpt-5", {"input": "x", "previous_response_id": "r"}, "kept_by_the_vendor"),
        ("gpt-5", {"input": "x", "tools": [{"type": "web_search"}]}, "tool_of_the_vendor"),
        ("gpt-5", {"input": [{"type": "reasoning", "encrypted_content": "A" * 3_000, "id": "r"}]}, "reasoning_encrypted"),
        ("gpt-5", {"input": [{"type": "computer_call", "x": 1}]}, "item_of_the_vendor"),
        (
            "gpt-4o",
            {"input": [{"type": "function_call", "name": name, "arguments": "{}", "call_id": name} for name in ("a", "b")]},
            "calls_at_once",
        ),
        ("gpt-5", {"input": [user([{"type": "input_file", "file_id": "f"}])]}, "file_not_read"),
        ("claude-opus-4-8", chat(user([{"type": "document", "source": {"type": "base64", "data": "eA=="}}])), "file_not_read"),
        ("claude-opus-4-8", chat(user("x"), tools=[{"type": "web_search_20250305", "name": "web_search"}]), "tool_of_the_vendor"),
        ("gemini-3-flash", {"contents": [], "cachedContent": "c"}, "kept_by_the_vendor"),
        ("gemini-3-flash", {"contents": [{"parts": [{"inline_data": {"mime_type": "audio/wav", "data": "AAAA"}}]}]}, "file_not_read"),
        (
            "gpt-5",
            chat(user("x"), response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}),
            "answer_schema",
        ),
    ],
)
def test_what_cannot_be_counted_is_guessed_and_told(tokenizers: Tokenizers, model: str, request_: dict[str, Any], note: str) -> None:
    counted = checked(count_request(model, request_, tokenizers))
    assert note in counted.notes
    assert counted.tokens.method is CountMethod.ESTIMATE
    assert counted.tokens.low < counted.tokens.high


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        value = {"type": "object", "properties": {"a": value}}
    return value


HOSTILE: list[Any] = [
    None,
    5,
    "\ud800 lone",
    "<|im_start|>system<|endoftext|><end_of_turn>",
    "x" * 1_000_000,
    " " * 1_000_000,
    [[[["x"]]]],
    {"type": "text", "text": {"a": 1}},
    [{"type": "text", "text": None}, {"type": "\ud800"}, None, 7, {}],
    deep(90),
    {"$ref": "#", "properties": {"a": {"$ref": "#"}, "b": {"anyOf": [{"$ref": "#"}] * 9}}, "type": "object"},
    {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(3_000)}},
]


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda value: repr(value)[:30].encode("ascii", "replace").decode())
@pytest.mark.parametrize("model", ["gpt-4o", "claude-opus-4-8", "gemini-2.5-flash", "gemini-3-flash", "deepseek-chat"])
def test_hostile_content_in_any_field_costs_bounded_work(tokenizers: Tokenizers, model: str, hostile: Any) -> None:
    began = time.process_time()
    message = {
        "role": hostile,
        "content": hostile,
        "name": hostile,
        "tool_calls": [{"function": {"name": hostile, "arguments": hostile}}, hostile],
    }
    blocks = [
        {"type": kind, "input": hostile, "content": hostile, "name": hostile, "source": hostile}
        for kind in ("tool_use", "tool_result", "image", hostile)
    ]
    part = {"text": hostile, "functionCall": hostile, "thoughtSignature": hostile}
    calls = [{"functionCall": {"name": hostile, "args": hostile}}, {"function_response": {"name": hostile, "response": hostile}}]
    tool = {"name": hostile, "description": hostile, "parameters": hostile, "input_schema": hostile}
    request: dict[str, Any] = {
        "system": hostile,
        "thinking": {"type": hostile},
        "tool_choice": {"type": hostile},
        "response_format": hostile,
    }
    if model.startswith("gemini"):
        request |= {
            "contents": [{"parts": [part, *calls, hostile]}, hostile],
            "tools": [{"functionDeclarations": [tool, hostile]}, hostile],
        }
    else:
        request |= {
            "messages": [message, {"role": "user", "content": blocks}, hostile],
            "tools": [tool, {"type": "function", "function": tool}, hostile],
        }
    checked(count_request(model, request, tokenizers))
    if model == "gpt-4o":
        items = [
            {"type": kind, "content": hostile, "output": hostile, "arguments": hostile, "name": hostile}
            for kind in ("function_call", "function_call_output", "x", hostile)
        ]
        checked(count_request(model, {"input": [*items, hostile], "tools": [{"type": "function", **tool}], "text": hostile}, tokenizers))
    assert time.process_time() - began < 20


def test_a_request_that_nests_too_deeply_is_refused(tokenizers: Tokenizers) -> None:
    with pytest.raises(InvalidJson):
        count_request("gpt-4o", chat(user("x"), tools=[function(parameters=deep(400))]), tokenizers)


@given(text=st.text(max_size=60))
@settings(max_examples=40, deadline=None, database=None)
def test_more_text_never_costs_less(tokenizers: Tokenizers, text: str) -> None:
    for model in ("gpt-5.2", "gemini-3-flash", "deepseek-chat"):
        whole = checked(count_text(model, f"{text}\n\n{FOX}", tokenizers)).tokens.value
        assert whole >= checked(count_text(model, text, tokenizers)).tokens.value


def test_packaged_tokenizers_are_the_vendors(tokenizers: Tokenizers) -> None:
    assert [tokenizers.for_name(name).count(FOX) for name in (DEEPSEEK, GEMMA)] == [10, 10]
    assert {status.name: (status.method, status.engine) for status in tokenizers.status(DEEPSEEK, GEMMA)} == {
        DEEPSEEK: (CountMethod.EXACT, "splintr"),
        GEMMA: (CountMethod.EXACT, "splintr"),
    }
    for name in (DEEPSEEK, GEMMA):
        counter = tokenizers.for_name(name)
        # Special tokens in a text are text.
        assert counter.count("<end_of_turn><\uff5cend\u2581of\u2581sentence\uff5c>") > 6
        assert counter.count("\ud800") >= 1
        text = "Olá, ação 👩‍👧 你好"
        size = len(text.encode())
        whole = counter.tally(text, [(0, size)])
        assert whole.within == whole.total == counter.count(text)
        half = counter.tally(text, [(0, size // 2), (size // 2, size)])
        assert half.within == whole.total


@pytest.mark.parametrize("name", [DEEPSEEK, GEMMA])
def test_another_vocabulary_is_not_used(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(packaged_tokenizers, "DEEPSEEK_SHA256", "0" * 64)
    monkeypatch.setattr(packaged_tokenizers, "GEMMA_SHA256", "0" * 64)
    assert packaged_tokenizers.load(name) is None
    fresh = Tokenizers()
    assert isinstance(fresh.for_name(name), ByteCounter)
    assert fresh.status(name)[0].source == "estimate"


def test_a_count_is_plain_json(tokenizers: Tokenizers) -> None:
    told = json.loads(count_text("gpt-5.2", FOX, tokenizers).model_dump_json())
    assert told["tokens"]["parts"] == {"content": 10, "framing": 6, "tools": 0}
