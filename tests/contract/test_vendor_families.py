"""A1, A2, A9: Responses, Gemini, DeepSeek and compatible servers get what their own types take, with evidence where the vendor gives it no authority."""

from __future__ import annotations

import re
from typing import Any

import pytest
from answer_checks import check_what_every_answer_keeps
from hostile_units import REGISTRY, WHEN, chat_type, drained, item_lists, request, responses_type
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from adapters.base import RenderItem, RenderResult, unit_body
from adapters.compose import POLICY
from graph.model.answer import CountMethod
from graph.model.candidates import Candidate
from graph.model.units import ContextUnit, Kind, Metadata, Trust

questions = st.sampled_from([None, "", " \n", "What next?", "ç \ud800"])
CHATS = ["deepseek-v4-pro", "deepseek-v3.1", "deepseek-next", "openai-compatible/some/Model-7B"]
GEMINI = ["gemini-2.5-flash", "gemini-3-pro-preview", "models/gemini-3.6-pro", "gemini-9"]


def asked(question: str | None) -> bool:
    return question is not None and question.strip() != ""


def check_count(result: RenderResult, *, exact: bool = False) -> None:
    count = result.tokens
    assert 0 <= count.low <= count.value <= count.high
    assert count.value == count.parts.content + count.parts.framing
    assert min(count.parts.content, count.parts.framing) >= 0
    assert (count.method is CountMethod.EXACT) is exact


@pytest.fixture(scope="module")
def responses() -> TypeAdapter[Any]:
    return responses_type()


@pytest.fixture(scope="module")
def chat() -> TypeAdapter[Any]:
    return chat_type()


@given(items=item_lists(), question=questions, model=st.sampled_from(["gpt-5.2", "gpt-4.1", "o3", "openai/responses/gpt-5.5"]))
@settings(max_examples=50, deadline=None, database=None)
def test_responses_payloads_are_what_the_sdk_takes(
    responses: TypeAdapter[Any], items: list[RenderItem], question: str | None, model: str
) -> None:
    result = REGISTRY.for_model(model, "responses").render(request(model, items, question))
    payload = result.rendered.payload
    assert result.rendered.api == "openai.responses"
    assert drained(responses.validate_python(payload)) == payload
    assert payload["instructions"].startswith(POLICY)
    assert [item["role"] for item in payload["input"]] == ["user"] * (1 + asked(question))
    assert payload["model"] == model.removeprefix("openai/responses/")
    check_what_every_answer_keeps(result, items, payload["instructions"], payload["input"][0]["content"])
    check_count(result, exact=True)


@given(items=item_lists(), question=questions, model=st.sampled_from(CHATS))
@settings(max_examples=50, deadline=None, database=None)
def test_other_chat_payloads_alternate_and_are_what_the_sdk_takes(
    chat: TypeAdapter[Any], items: list[RenderItem], question: str | None, model: str
) -> None:
    result = REGISTRY.for_model(model).render(request(model, items, question))
    payload = result.rendered.payload
    assert drained(chat.validate_python(payload)) == payload
    assert [message["role"] for message in payload["messages"]] == ["system", "user"]
    content = payload["messages"][1]["content"]
    if asked(question):
        last = (question or "").replace("\ud800", "\ufffd")
        assert content.endswith(f"\n\n{last}")
        content = content.removesuffix(f"\n\n{last}")
    check_what_every_answer_keeps(result, items, payload["messages"][0]["content"], content)
    check_count(result)


@given(items=item_lists(), question=questions, model=st.sampled_from(GEMINI))
@settings(max_examples=50, deadline=None, database=None)
def test_gemini_payloads_are_what_the_sdk_takes(items: list[RenderItem], question: str | None, model: str) -> None:
    from google.genai import types

    result = REGISTRY.for_model(model).render(request(model, items, question))
    payload = result.rendered.payload
    assert result.rendered.api == "google.generate_content"
    assert set(payload) == {"systemInstruction", "contents"}
    assert types.Content.model_validate(payload["systemInstruction"]).model_dump(exclude_none=True) == payload["systemInstruction"]
    contents = [types.Content.model_validate(content).model_dump(exclude_none=True) for content in payload["contents"]]
    assert contents == payload["contents"]
    assert [content["role"] for content in contents] == ["user"]
    parts = [part["text"] for part in contents[0]["parts"]]
    assert len(parts) == 1 + asked(question)
    assert all(part.strip() for part in parts)
    check_what_every_answer_keeps(result, items, payload["systemInstruction"]["parts"][0]["text"], parts[0])
    check_count(result)


def unit(id: str, content: str = "What was found.", kind: Kind = Kind.OBSERVATION, **more: Any) -> ContextUnit:
    return ContextUnit(id=id, kind=kind, content=content, **more)


def items_of(*units: ContextUnit) -> list[RenderItem]:
    return [RenderItem(each, 1.0, group) for group, each in enumerate(units)]


ALL = ["gpt-4o", "gpt-4.1", "responses/gpt-5.2", "claude-opus-4-6", "claude-opus-5", *CHATS, *GEMINI]


@given(texts=st.lists(st.text(alphabet="abc xyz ção 12,.;\n-/你", min_size=1, max_size=200), max_size=12), model=st.sampled_from(ALL))
@settings(max_examples=80, deadline=None, database=None)
def test_what_selection_reckons_with_is_enough_in_every_family(texts: list[str], model: str) -> None:
    units = [
        unit(
            f"u-{n}", text, list(Kind)[n % 7], metadata=Metadata(timestamp=WHEN, agent_id="planner", task_step=n), trust=list(Trust)[n % 5]
        )
        for n, text in enumerate(texts)
    ]
    adapter = REGISTRY.for_model(model)
    reckoned = adapter.base_tokens("Why?") + sum(adapter.unit_tokens(candidate(each)) for each in units)
    value = adapter.render(request(model, items_of(*units), "Why?")).tokens.value
    assert value <= reckoned <= value * 1.5 + 20


def candidate(of: ContextUnit) -> Candidate:
    return Candidate(
        id=of.id,
        kind=of.kind,
        trust=of.trust,
        epistemic_status=of.metadata.epistemic_status,
        agent_id=of.metadata.agent_id or "",
        actor=of.metadata.actor,
        timestamp=of.metadata.timestamp or WHEN,
        task_id=None,
        task_step=of.metadata.task_step,
        tool_name=of.metadata.tool.name if of.metadata.tool else None,
        content_tokens=REGISTRY.tokenizers.count_o200k(unit_body(of)),
        score=1.0,
    )


@pytest.mark.parametrize("model", ALL)
def test_every_profile_says_where_untrusted_text_may_stand(model: str) -> None:
    profile = REGISTRY.for_model(model).profile
    assert profile.places.untrusted[0] == "user"
    assert profile.places.source
    assert profile.pairs is not None
    assert profile.cache.source


def test_a_server_of_ones_own_is_told_its_own_model_id() -> None:
    rendered = REGISTRY.for_model("openai-compatible/Org/Model-7B").render(request("openai-compatible/Org/Model-7B", [])).rendered
    assert rendered.payload["model"] == "Org/Model-7B"
    assert rendered.model == "openai-compatible/Org/Model-7B"
    assert re.search("defaults of the openai-compatible family", rendered.notes[0])
    assert REGISTRY.for_model("openai-compatible/Org/Model-7B").render(request("x", [])).tokens.method is CountMethod.ESTIMATE


def test_what_a_model_refuses_is_told() -> None:
    for model, refused in (("claude-opus-4-6", "prefill"), ("claude-opus-4-7", "temperature"), ("deepseek-v3", "reasoning_content")):
        notes = REGISTRY.for_model(model).render(request(model, [])).rendered.notes
        assert any(refused in note for note in notes)
    assert REGISTRY.for_model("claude-opus-4-5").render(request("claude-opus-4-5", [])).rendered.notes == []
