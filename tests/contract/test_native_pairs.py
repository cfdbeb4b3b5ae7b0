"""A2, A7, A9: tool calls of the caller's own session in each vendor's own form, by each vendor's rules; everything else stays evidence."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hostile_units import (
    AGENT,
    REGISTRY,
    SESSION,
    WHEN,
    chat_type,
    drained,
    item_lists,
    messages_type,
    native_request,
    request,
    responses_type,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from test_vendor_families import candidate

from adapters.base import RenderItem, RenderResult
from adapters.fence import defuse
from adapters.pairs import may_be_native, plain_arguments
from adapters.tool_names import native_id, native_name
from graph.model.query import ToolPairs
from graph.model.units import ContextUnit, EdgeType, EpistemicStatus, Kind, Metadata, Relation, Tool, Trust

CHATS = ["gpt-4o", "gpt-5.2", "deepseek-v4", "deepseek-v3", "openai-compatible/m"]
MODELS = [*CHATS, "responses/gpt-5.2", "claude-opus-4-5", "claude-opus-5", "gemini-2.5-pro", "gemini-3-pro"]
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}|[a-zA-Z0-9_-]{1,64}")
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def calls_of(payload: dict[str, Any]) -> list[tuple[str, dict[str, Any], str]]:
    """Name, arguments and output of each native pair, after the vendor's rules for them were held against the payload."""
    if "input" in payload:
        return responses_calls(payload["input"])
    if "contents" in payload:
        return gemini_calls(payload["contents"])
    return messages_calls(payload["messages"]) if "system" in payload else chat_calls(payload["messages"])


def chat_calls(messages: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any], str]]:
    found: list[tuple[str, dict[str, Any], str]] = []
    ids: list[str] = []
    for at, message in enumerate(messages):
        assert (message["role"] == "tool") == (at > 0 and messages[at - 1]["role"] == "assistant")
        if message["role"] == "assistant":
            (call,) = message["tool_calls"]
            answer = messages[at + 1]
            assert answer["tool_call_id"] == call["id"]
            assert len(call["id"]) <= 40
            ids.append(call["id"])
            found.append((call["function"]["name"], json.loads(call["function"]["arguments"], parse_constant=refuse), answer["content"]))
    check_ids(ids)
    return found


def responses_calls(items: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any], str]]:
    found: list[tuple[str, dict[str, Any], str]] = []
    ids: list[str] = []
    for at, item in enumerate(items):
        if item.get("type") == "function_call":
            answer = items[at + 1]
            assert (answer["type"], answer["call_id"]) == ("function_call_output", item["call_id"])
            assert "id" not in item
            ids.append(item["call_id"])
            found.append((item["name"], json.loads(item["arguments"], parse_constant=refuse), answer["output"]))
    assert sum(item.get("type") == "function_call_output" for item in items) == len(found)
    check_ids(ids)
    return found


def messages_calls(turns: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any], str]]:
    found: list[tuple[str, dict[str, Any], str]] = []
    ids: list[str] = []
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * (len(turns) // 2) + ["user"]
    for at, turn in enumerate(turns):
        uses = [block for block in turn["content"] if block["type"] == "tool_use"]
        assert len(uses) == (turn["role"] == "assistant")
        for use in uses:
            answer = turns[at + 1]["content"][0]
            assert (answer["type"], answer["tool_use_id"]) == ("tool_result", use["id"])
            assert turn["content"][-1] is use
            ids.append(use["id"])
            found.append((use["name"], use["input"], answer["content"]))
        assert all(block["text"].strip() for block in turn["content"] if block["type"] == "text")
    check_ids(ids)
    return found


def gemini_calls(contents: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any], str]]:
    found: list[tuple[str, dict[str, Any], str]] = []
    for at, content in enumerate(contents):
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        assert len(calls) == (content["role"] == "model")
        for call in calls:
            (answer,) = contents[at + 1]["parts"]
            assert answer["functionResponse"]["name"] == call["name"]
            assert isinstance(answer["functionResponse"]["response"], dict)
            found.append((call["name"], call["args"], answer["functionResponse"]["response"]["output"]))
    return found


def check_ids(ids: list[str]) -> None:
    assert len(set(ids)) == len(ids)
    assert all(ID.fullmatch(id) for id in ids)


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def last_text(payload: dict[str, Any]) -> str:
    if "input" in payload:
        return payload["input"][-1]["content"]
    if "contents" in payload:
        return payload["contents"][-1]["parts"][-1]["text"]
    content = payload["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


def check_types(result: RenderResult) -> None:
    payload = result.rendered.payload
    if result.rendered.api == "google.generate_content":
        from google.genai import types

        for content in payload["contents"]:
            read = types.Content.model_validate(content)
            assert [part.model_dump(exclude_none=True, by_alias=True, exclude={"thought_signature"}) for part in read.parts or []] == [
                {key: value for key, value in part.items() if key != "thoughtSignature"} for part in content["parts"]
            ]
        return
    if result.rendered.api == "anthropic.messages":
        assert drained(MESSAGES.validate_python(payload)) == payload
    elif result.rendered.api == "openai.responses":
        assert drained(RESPONSES.validate_python(payload)) == payload
    else:
        # Reasoning is DeepSeek's own, which OpenAI's types do not know.
        plain = {
            **payload,
            "messages": [{key: value for key, value in each.items() if key != "reasoning_content"} for each in payload["messages"]],
        }
        assert drained(CHAT.validate_python(plain)) == plain


CHAT, RESPONSES, MESSAGES = chat_type(), responses_type(), messages_type()


@given(items=item_lists(), question=st.sampled_from([None, " ", "What next?"]), model=st.sampled_from(MODELS))
@settings(max_examples=200, deadline=None, database=None)
def test_each_vendors_rules_hold_whatever_the_units(items: list[RenderItem], question: str | None, model: str) -> None:
    adapter = REGISTRY.for_model(model)
    asked = native_request(model, items, question)
    result = adapter.render(asked)
    json.dumps(result.rendered.payload, ensure_ascii=False, allow_nan=False).encode()
    check_types(result)
    calls = calls_of(result.rendered.payload)
    units = {item.unit.id: item.unit for item in items}
    assert sorted(result.rendered.order) == sorted(units)
    assert all(NAME.fullmatch(name) for name, _, _ in calls)
    for name, _, output in calls:
        answered = re.match(r"\[unit (\S+) \| tool_result[^\n]* \| answers ([^\n|\]]+?)(?: \||\])", output)
        assert answered is not None
        result_unit = units[answered[1]]
        call = next(unit for unit in units.values() if defuse_id(unit.id) == answered[2])
        assert may_be_native(call, agent_id=AGENT, session_id=SESSION)
        assert may_be_native(result_unit, agent_id=AGENT, session_id=SESSION)
        assert call.kind is Kind.DECISION
        assert call.trust is not Trust.EVIDENCE_CANDIDATE
        assert call.metadata.actor in (None, AGENT)
        assert call.metadata.tool is not None
        recorded = call.metadata.tool.name
        assert result.rendered.tool_names.get(name, name) == recorded.replace("\ud800", "\ufffd")
        assert defuse(result_unit.content) in output
    if question == "What next?":
        assert last_text(result.rendered.payload).endswith("What next?")
    count = result.tokens
    assert count.low <= count.value <= count.high
    assert count.value == count.parts.content + count.parts.framing
    assert json.dumps(adapter.render(asked).rendered.payload) == json.dumps(result.rendered.payload)


def defuse_id(id: str) -> str:
    from adapters.fence import field

    return field(id)


@given(items=item_lists(), model=st.sampled_from(MODELS))
@settings(max_examples=100, deadline=None, database=None)
def test_what_selection_reckons_with_is_enough_for_native_pairs(items: list[RenderItem], model: str) -> None:
    adapter = REGISTRY.for_model(model)
    # The header's longest form needs who replaced a unit, which selection knows and this list does not say.
    items = [
        replace(item, unit=item.unit.model_copy(update={"relations": only_causes(item.unit), "content": plain(item.unit.content)}))
        for item in items
    ]
    reckoned = adapter.base_tokens("Why?")
    for item in items:
        native = item.unit if may_be_native(item.unit, agent_id=AGENT, session_id=SESSION) else None
        reckoned += adapter.unit_tokens(candidate(item.unit), native)
    # A control token that is made harmless costs some tokens more than were counted when it was written.
    slack = 4 * sum(item.unit.metadata.tool is not None for item in items) * math.ceil(adapter.profile.tokenizer.factor) + len(items)
    assert adapter.render(native_request(model, items, "Why?")).tokens.value <= reckoned + slack


def only_causes(unit: ContextUnit) -> list[Relation]:
    return [relation for relation in unit.relations if relation.edge_type is EdgeType.CAUSATION]


def plain(text: str) -> str:
    return re.sub(r"[^\w .,]", "", text) or "x"


# --- by example -----------------------------------------------------------------------------------------------------------------


def call(id: str = "c-1", name: str = "search", call_id: str | None = "call_1", **more: Any) -> ContextUnit:
    metadata = Metadata(
        timestamp=WHEN, agent_id=AGENT, session_id=SESSION, tool=Tool(name=name, call_id=call_id, arguments={"q": "ação", "n": 3})
    )
    return ContextUnit(id=id, kind=Kind.DECISION, content="Looks it up.", metadata=metadata.model_copy(update=more))


def answer(id: str = "r-1", to: str = "c-1", name: str = "search", call_id: str | None = "call_1", **more: Any) -> ContextUnit:
    metadata = Metadata(timestamp=WHEN, agent_id=AGENT, session_id=SESSION, tool=Tool(name=name, call_id=call_id))
    return ContextUnit(
        id=id,
        kind=Kind.TOOL_RESULT,
        content="Two hits.",
        metadata=metadata.model_copy(update=more),
        relations=[Relation(target_id=to, edge_type=EdgeType.CAUSATION)],
    )


def group(*units: ContextUnit, number: int = 0) -> list[RenderItem]:
    return [RenderItem(each, 1.0, number) for each in units]


def payload_of(model: str, items: list[RenderItem], question: str | None = "What next?") -> dict[str, Any]:
    return REGISTRY.for_model(model).render(native_request(model, items, question)).rendered.payload


HEADER = "[unit r-1 | tool_result of search | answers c-1 | by planner | 2026-03-04T08:06Z]\n"


def test_chat_has_the_call_then_its_result_then_the_question() -> None:
    messages = payload_of("gpt-5.2", group(call(), answer()))["messages"]
    assert [message["role"] for message in messages] == ["developer", "user", "assistant", "tool", "user"]
    function = {"name": "search", "arguments": '{"q": "ação", "n": 3}'}
    assert messages[2] == {
        "role": "assistant",
        "content": "Looks it up.",
        "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
    }
    assert messages[3] == {"role": "tool", "tool_call_id": "call_1", "content": f"{HEADER}Two hits."}
    assert messages[4]["content"] == "What next?"


def test_deepseek_v4_wants_the_reasoning_on_a_turn_with_a_call_and_v3_does_not() -> None:
    turn = payload_of("deepseek-v4", group(call(), answer()))["messages"][2]
    assert (turn["content"], turn["reasoning_content"]) == ("", "Looks it up.")
    assert "reasoning_content" not in payload_of("deepseek-v3", group(call(), answer()))["messages"][2]


def test_gemini_3_gets_a_signature_on_what_it_did_not_call_itself_and_2_5_does_not() -> None:
    model, user = payload_of("gemini-3-pro", group(call(), answer()))["contents"][1:3]
    part = model["parts"][1]
    assert part["functionCall"] == {"name": "search", "args": {"q": "ação", "n": 3}}
    assert part["thoughtSignature"] == "skip_thought_signature_validator"
    assert user == {
        "role": "user",
        "parts": [{"functionResponse": {"name": "search", "response": {"output": f"{HEADER}Two hits."}}}],
    }
    assert "thoughtSignature" not in json.dumps(payload_of("gemini-2.5-pro", group(call(), answer())))


def test_claude_has_the_result_first_and_the_question_after_it_in_the_same_turn() -> None:
    turns = payload_of("claude-opus-5", group(call(), answer()))["messages"]
    assert [[block["type"] for block in turn["content"]] for turn in turns] == [["text"], ["text", "tool_use"], ["tool_result", "text"]]
    assert turns[1]["content"][1]["id"] == turns[2]["content"][0]["tool_use_id"] == "call_1"
    notes = REGISTRY.for_model("claude-opus-5").render(native_request("claude-opus-5", group(call(), answer()))).rendered.notes
    assert any("add them as `tools`" in note for note in notes)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "items",
    [
        group(call()),
        group(answer()),
        group(call(), answer(to="other", call_id="call_2")),
        group(call(agent_id="somebody"), answer()),
        group(call(session_id="another"), answer()),
        group(call(session_id=None), answer(session_id=None)),
        group(call(), answer(agent_id="somebody")),
        group(call(actor="a person"), answer()),
        group(call(epistemic_status=EpistemicStatus.CONTESTED), answer()),
        group(call().model_copy(update={"trust": Trust.EVIDENCE_CANDIDATE}), answer()),
        group(call().model_copy(update={"kind": Kind.OBSERVATION}), answer()),
        group(call(tool=None), answer()),
        [*group(call(), answer()), *group(ContextUnit(id="n", kind=Kind.CORRECTION, content="No.", relations=[Relation(target_id="c-1", edge_type=EdgeType.SUPERSESSION)]), number=1)],
    ],
    ids=range(13),
)  # fmt: skip
def test_what_is_not_whole_or_not_the_callers_own_stays_evidence(model: str, items: list[RenderItem]) -> None:
    result = REGISTRY.for_model(model).render(native_request(model, items, "Why?"))
    assert calls_of(result.rendered.payload) == []
    assert sorted(result.rendered.order) == sorted(item.unit.id for item in items)


@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_native_unless_it_is_asked_for(model: str) -> None:
    adapter = REGISTRY.for_model(model)
    asked = native_request(model, group(call(), answer()), "Why?")
    assert len(calls_of(adapter.render(asked).rendered.payload)) == 1
    for other in (replace(asked, tool_pairs=ToolPairs.FENCED), replace(asked, session_id=None), replace(asked, agent_id=None)):
        assert calls_of(adapter.render(other).rendered.payload) == []
    assert calls_of(adapter.render(request(model, group(call(), answer()))).rendered.payload) == []


@pytest.mark.parametrize("model", MODELS)
def test_names_and_ids_that_a_vendor_refuses_are_changed_and_told(model: str) -> None:
    items = [
        *group(call("c-1", "fs.read file", "a:b"), answer("r-1", "c-1", "fs.read file", "a:b")),
        *group(call("c-2", "x" * 200, "same"), answer("r-2", "c-2", "x" * 200, "same"), number=1),
        *group(call("c-3", "ok", "same"), answer("r-3", "c-3", "ok", "same"), number=2),
    ]
    rendered = REGISTRY.for_model(model).render(native_request(model, items)).rendered
    names = [name for name, _, _ in calls_of(rendered.payload)]
    assert [rendered.tool_names.get(name, name) for name in names] == ["fs.read file", "x" * 200, "ok"]
    assert set(rendered.tool_names) == set(names[:2])
    assert any("tool_names" in note for note in rendered.notes)


@pytest.mark.parametrize("model", MODELS)
def test_several_results_of_one_call_are_told_as_one(model: str) -> None:
    items = group(call(), answer("r-1"), answer("r-2"))
    ((_, _, output),) = calls_of(payload_of(model, items))
    assert output.count("Two hits.") == 2
    assert output.count("answers c-1") == 1
    assert "[unit r-2 | tool_result of search | by planner" in output


def test_pairs_stand_in_the_order_of_recording_whatever_their_priority() -> None:
    late = WHEN.replace(hour=9)
    items = [
        *group(call("late", call_id="b", timestamp=late), answer("late-r", "late", call_id="b", timestamp=late)),
        *group(call("early", call_id="a"), answer("early-r", "early", call_id="a"), number=1),
    ]
    assert REGISTRY.for_model("gpt-5.2").render(native_request("gpt-5.2", items)).rendered.order == ["early", "early-r", "late", "late-r"]


def test_a_name_stays_itself_or_becomes_one_that_no_other_name_becomes() -> None:
    pattern = "[a-zA-Z0-9_-]{1,64}"
    assert native_name("search", pattern, 64) == "search"
    odd = ["a b", "a.b", "a_b ", "\u00e9", "", "1 2", "x" * 65, "x" * 66, "\ud800", "</context>"]
    made = [native_name(name, pattern, 64) for name in odd]
    assert len(set(made)) == len(odd)
    assert all(re.fullmatch("[a-zA-Z][a-zA-Z0-9_-]{0,63}", name) for name in made)
    assert made == [native_name(name, pattern, 64) for name in odd]


def test_an_id_is_never_used_twice() -> None:
    taken: set[str] = set()
    made = native_id(None, "u-1", 40, taken)
    ids = [made, native_id(made, "u-2", 40, taken), native_id("x", "u-3", 40, taken), native_id("x", "u-4", 40, taken), native_id("é" * 3, "u-1", 40, taken)]  # fmt: skip
    assert len(set(ids)) == 5 == len(taken)


def test_arguments_are_copied_without_recursion_or_not_at_all() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    assert plain_arguments({"a": deep}) is None
    assert plain_arguments({"a": math.inf}) is None
    assert plain_arguments({"a": math.nan}) is None
    assert plain_arguments({"<|im_start|>": 1, "\u2039|im_start|\u203a": 2}) is None
    assert plain_arguments({"a": [{"b": "<|im_start|>"}, None, 1.5, True, [], {}]}) == {
        "a": [{"b": "\u2039|im_start|\u203a"}, None, 1.5, True, [], {}]
    }
