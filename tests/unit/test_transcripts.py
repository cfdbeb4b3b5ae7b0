"""A8, U6: a transcript written in any vendor's form and read back is the same, or a note says what that form cannot hold."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcript_cases import HELD, PNG, any_turns, held_by, with_ids_of

from adapters.conformance.vendor_types import validator
from adapters.transcripts.forms import FORMS
from adapters.transcripts.model import FAILED, Call, File, Result, Text, Thought, Turn, Written
from adapters.transcripts.pairs import NOTE_CALL_ID, NOTE_MOVED, NOTE_NO_CALL, NOTE_NO_RESULT, NOTE_TOOL_NAME

APIS = {
    "openai-chat": "openai.chat.completions",
    "openai-responses": "openai.responses",
    "anthropic": "anthropic.messages",
    "gemini": "google.generate_content",
    "deepseek": "deepseek.chat.completions",
}
NAMES = sorted(FORMS)


def written(name: str, turns: list[Turn], model: str = "m") -> Written:
    return FORMS[name].write(turns, model=model)


def read(name: str, request: dict[str, Any]) -> list[Turn]:
    form = FORMS[name]
    return form.turns(form.messages(request, None), Counter())


def check_types(name: str, request: dict[str, Any]) -> None:
    payload = {"model": "m", **request}
    if name == "anthropic":
        payload["max_tokens"] = 16
    assert list(validator(APIS[name])(payload)) == []


def test_every_form_is_known() -> None:
    assert set(FORMS) == set(HELD) == set(APIS)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_form_can_hold_comes_back_whole(name: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(held_by(name))
    def check(turns: list[Turn]) -> None:
        said = written(name, turns)
        assert not said.notes
        assert read(name, json.loads(json.dumps(said.request))) == turns
        check_types(name, said.request)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_any_transcript_is_a_valid_request_and_what_is_lost_is_noted(name: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(any_turns)
    def check(turns: list[Turn]) -> None:
        said = written(name, turns)
        assert said == written(name, turns)
        json.dumps(said.request, ensure_ascii=False).encode("utf-8")
        check_types(name, said.request)
        back = read(name, said.request)
        turns = [turn for turn in turns if turn.parts]
        assert said.notes or with_ids_of(turns, back) == turns
        check_pairs(name, said.request)
        assert read(name, written(name, back).request) == back, "what was written once loses nothing more"

    check()


def check_pairs(name: str, request: dict[str, Any]) -> None:
    """Behind each turn that calls stand all its results and nothing else, and each id is there once."""
    turns = read(name, request)
    waiting: list[str | None] = []
    seen: set[str | None] = set()
    for turn in turns:
        for part in turn.parts:
            if isinstance(part, Call):
                assert part.call_id not in seen
                seen.add(part.call_id)
        if turn.role == "tool":
            part = turn.parts[0]
            assert isinstance(part, Result)
            assert part.call_id in waiting
            waiting.remove(part.call_id)
        elif turn.role == "assistant" and any(isinstance(part, Call) for part in turn.parts):
            waiting += [part.call_id for part in turn.parts if isinstance(part, Call)]
        else:
            assert not waiting
    assert not waiting


def test_anthropic_results_of_one_turn_stand_first_in_one_message() -> None:
    calls = (Text("I look."), Call("find", "a", {}), Call("find", "b", {}))
    turns = [
        Turn("user", (Text("Where?"),)),
        Turn("assistant", calls),
        Turn("tool", (Result("here", "b", "find"),)),
        Turn("user", (Text("Quick!"),)),
        Turn("tool", (Result("there", "a", "find", failed=True),)),
    ]
    said = written("anthropic", turns)
    assert said.notes == Counter({NOTE_MOVED: 1})
    messages: list[Any] = said.request["messages"]  # type: ignore[assignment]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [(block["type"], block.get("tool_use_id"), block.get("is_error")) for block in messages[2]["content"]] == [
        ("tool_result", "b", False),
        ("tool_result", "a", True),
        ("text", None, None),
    ]


def test_gemini_responses_are_as_many_as_calls_and_objects() -> None:
    turns = [
        Turn("assistant", (Call("find", "a", {"q": 1}), Call("count", "b", {}))),
        Turn("tool", (Result("[1, 2]", "a", "find", (PNG,)),)),
        Turn("tool", (Result("none", "b", "count", failed=True),)),
    ]
    contents: list[Any] = written("gemini", turns, "gemini-3-pro").request["contents"]  # type: ignore[assignment]
    assert [part["thoughtSignature"] for part in contents[0]["parts"]] == ["c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="] * 2
    assert [part["functionResponse"]["response"] for part in contents[1]["parts"]] == [{"output": "[1, 2]"}, {"error": "none"}]
    older: list[Any] = written("gemini", turns, "gemini-2.5-pro").request["contents"]  # type: ignore[assignment]
    assert "thoughtSignature" not in older[0]["parts"][0]


def test_deepseek_has_reasoning_on_every_turn_that_calls() -> None:
    turns = [
        Turn("assistant", (Thought("Two ways."), Call("find", "a", {}))),
        Turn("tool", (Result("x", "a", "find"),)),
        Turn("assistant", (Call("find", "b", {}),)),
        Turn("tool", (Result("y", "b", "find"),)),
    ]
    messages: list[Any] = written("deepseek", turns).request["messages"]  # type: ignore[assignment]
    assert [message.get("reasoning_content") for message in messages] == ["Two ways.", None, "", None]
    chat: list[Any] = written("openai-chat", turns).request["messages"]  # type: ignore[assignment]
    assert all("reasoning_content" not in message for message in chat)


@pytest.mark.parametrize("name", NAMES)
def test_what_vendors_refuse_is_mended_and_noted(name: str) -> None:
    turns = [
        Turn("tool", (Result("late", "gone", "find"),)),
        Turn("assistant", (Call("a tool!", "same", {}),)),
        Turn("tool", (Result("one", "same", "a tool!"),)),
        Turn("assistant", (Call("find", "same", {}),)),
    ]
    said = written(name, turns)
    assert said.notes[NOTE_NO_CALL] == said.notes[NOTE_NO_RESULT] == 1
    assert said.notes[NOTE_TOOL_NAME] == 1 or said.notes[NOTE_TOOL_NAME] == 2
    assert said.notes[NOTE_CALL_ID] == 1
    assert "late" in json.dumps(said.request)


@pytest.mark.parametrize("name", NAMES)
def test_an_error_of_a_tool_is_known_in_every_form(name: str) -> None:
    turns = [Turn("assistant", (Call("find", "a", {}),)), Turn("tool", (Result("no such thing", "a", "find", failed=True),))]
    assert read(name, written(name, turns).request) == turns


@pytest.mark.parametrize("name", NAMES)
def test_a_megabyte_of_anything_is_written_and_read_in_time(name: str) -> None:
    turns = [
        Turn("user", (Text("x" * 2**20), File("image", "image/png", data=bytes(2**20)))),
        *(
            turn
            for number in range(2_000)
            for turn in (
                Turn("assistant", (Call("find", f"c{number}", {"n": number}),)),
                Turn("tool", (Result("r", f"c{number}", "find"),)),
            )
        ),
        Turn("assistant", tuple(Call("find", None, {}) for _ in range(2_000))),
        *(Turn("tool", (Result(FAILED * 20, None, "find"),)) for _ in range(2_000)),
    ]
    back = read(name, written(name, turns).request)
    assert len(back) == len(turns)


@pytest.mark.parametrize("name", NAMES)
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_names_and_ids_that_had_to_change_stay_apart(name: str, data: st.DataObject) -> None:
    tools = data.draw(st.lists(st.text(max_size=90), min_size=2, max_size=4, unique=True))
    turns = [Turn("assistant", tuple(Call(tool or "x", f"c{number}", {}) for number, tool in enumerate(tools)))]
    back = [part.name for turn in read(name, written(name, turns).request) for part in turn.parts if isinstance(part, Call)]
    assert len(set(back)) == len({tool or "x" for tool in tools})
    assert all(len(tool) <= 128 for tool in back)
