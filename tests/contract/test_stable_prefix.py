"""A2: with a stable prefix, what did not change between two steps stays byte for byte at the front, and vendors' caches are told how far."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

import pytest
from hostile_units import REGISTRY, WHEN, chat_type, drained, item_lists, messages_type, responses_type
from hypothesis import given, settings

from adapters.base import RenderItem, RenderRequest
from adapters.compose import RECORDED
from adapters.conformance.places import places
from graph.model.answer import Rendered
from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, Relation, Trust

MODELS = ["gpt-5.2", "gpt-4.1", "responses/gpt-5.2", "claude-opus-5", "gemini-3-pro", "deepseek-v4", "openai-compatible/m"]


def unit(number: int, kind: Kind = Kind.OBSERVATION, *, at: datetime | None = None, **more: Any) -> ContextUnit:
    when = at or WHEN + timedelta(minutes=number)
    content = f"Finding {number}: the build number {number * 7919} failed after a while."
    return ContextUnit(
        id=f"u-{number}", kind=kind, content=content, metadata=Metadata(timestamp=when, recorded_at=when, task_id="task-1"), **more
    )


def request(model: str, units: list[ContextUnit], *, tenant: str = "t", task: str = "task-1", stable: bool = True) -> RenderRequest:
    # Priority is the reverse of time, as it is where the newest matter most.
    items = [RenderItem(each, 1.0, number) for number, each in enumerate(reversed(units))]
    return RenderRequest(model, items, "What next?", tenant, task, None, stable_prefix=stable)


def render(model: str, units: list[ContextUnit], **more: Any) -> Rendered:
    return REGISTRY.for_model(model).render(request(model, units, **more)).rendered


def rule(number: int) -> ContextUnit:
    return unit(number, Kind.CONSTRAINT, trust=Trust.NORMATIVE)


STEP = [rule(1), rule(2), *(unit(n) for n in range(3, 30))]


def shared(one: str, other: str) -> int:
    """Characters at the front that are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@pytest.mark.parametrize("model", MODELS)
def test_new_units_leave_everything_before_them_as_it_was(model: str) -> None:
    before, after = (json.dumps(render(model, units).payload) for units in (STEP, [*STEP, unit(30), unit(31)]))
    same = shared(before, after)
    # What stands in the first payload before its fence ends.
    assert same >= before.rindex("u-29")
    old, new = (json.dumps(render(model, units, stable=False).payload) for units in (STEP, [*STEP, unit(30), unit(31)]))
    assert shared(old, new) < same / 2


@pytest.mark.parametrize("model", MODELS)
def test_units_and_constraints_stand_in_the_order_of_recording(model: str) -> None:
    rendered = render(model, STEP)
    assert rendered.order == [f"u-{n}" for n in range(1, 30)]
    assert RECORDED in rendered.notes
    assert RECORDED not in render(model, STEP, stable=False).notes


def test_what_was_recorded_late_stands_late_though_it_happened_early() -> None:
    late = unit(99, at=WHEN)
    late = late.model_copy(update={"metadata": late.metadata.model_copy(update={"recorded_at": WHEN + timedelta(days=1)})})
    assert render("gpt-5.2", [late, *STEP]).order[-1] == "u-99"


def test_what_is_of_another_task_stands_after_the_tasks_own() -> None:
    other = unit(0)
    other = other.model_copy(update={"metadata": other.metadata.model_copy(update={"task_id": "task-2"})})
    assert render("gpt-5.2", [other, *STEP]).order[-1] == "u-0"


def test_a_pair_stands_where_its_result_came() -> None:
    cause = [Relation(target_id="u-3", edge_type=EdgeType.CAUSATION)]
    answer = ContextUnit(
        id="r",
        kind=Kind.TOOL_RESULT,
        content="Done.",
        relations=cause,
        metadata=Metadata(recorded_at=WHEN + timedelta(minutes=20, seconds=30), task_id="task-1"),
    )
    asked = request("gpt-5.2", STEP)
    items = [RenderItem(answer, 1.0, next(item.group for item in asked.items if item.unit.id == "u-3")), *asked.items]
    order = REGISTRY.for_model("gpt-5.2").render(replace(asked, items=items)).rendered.order
    assert order[order.index("u-20") :][:4] == ["u-20", "u-3", "r", "u-21"]


def test_claude_is_told_to_keep_the_rules_and_the_blocks_that_are_full() -> None:
    first, second = (render("claude-opus-5", units).payload for units in (STEP, [*STEP, unit(30)]))
    assert "cache_control" not in json.dumps(render("claude-opus-5", STEP, stable=False).payload)
    for payload in (first, second):
        assert [("cache_control" in block) for block in payload["system"]] == [False, True]
        blocks = payload["messages"][0]["content"]
        marked = [n for n, block in enumerate(blocks) if "cache_control" in block]
        assert marked == [2]
        assert blocks[2]["cache_control"] == {"type": "ephemeral"}
        assert [len(re.findall(r"^\[unit ", block["text"], re.MULTILINE)) for block in blocks[:3]] == [8, 8, 8]
    assert first["system"] == second["system"]
    assert first["messages"][0]["content"][:3] == second["messages"][0]["content"][:3]
    few = render("claude-opus-5", STEP[:6]).payload
    assert json.dumps(few).count("cache_control") == 1


def test_the_text_is_the_same_however_it_is_cut() -> None:
    blocks = render("claude-opus-5", STEP).payload["messages"][0]["content"][:-1]
    assert "".join(block["text"] for block in blocks) == render("gpt-5.2", STEP).payload["messages"][1]["content"]


def test_gpt_gets_a_name_for_its_cache_that_tells_nothing_and_is_the_places_own() -> None:
    def name(**more: Any) -> str:
        return render("gpt-5.2", STEP, **more).payload["prompt_cache_key"]

    assert re.fullmatch(r"\d{18}", name())
    assert len({name(), name(tenant="other"), name(task="task-2"), render("responses/o3", STEP[:3]).payload["prompt_cache_key"]}) == 3
    assert "prompt_cache_key" not in render("gpt-5.2", STEP, stable=False).payload
    assert "prompt_cache_key" not in render("openai-compatible/m", STEP).payload


def test_a_key_that_came_back_in_a_text_is_not_used_again() -> None:
    def key(units: list[ContextUnit]) -> str:
        found = re.match(r"<context (\d{18})>", render("gpt-5.2", units).payload["messages"][1]["content"])
        assert found is not None
        return found[1]

    first = key(STEP)
    leaked = unit(40).model_copy(update={"content": f"It ended with /context {first} as told."})
    assert key([*STEP, unit(41)]) == first
    assert key([*STEP, leaked]) != first


@given(items=item_lists())
@settings(max_examples=40, deadline=None, database=None)
def test_payloads_are_what_the_sdks_take_and_hold_every_unit(items: list[RenderItem]) -> None:
    for model, kind in (("gpt-5.2", CHAT), ("responses/gpt-5.2", RESPONSES), ("claude-opus-5", MESSAGES)):
        result = REGISTRY.for_model(model).render(RenderRequest(model, items, None, "t", None, None, stable_prefix=True))
        assert drained(kind.validate_python(result.rendered.payload)) == result.rendered.payload
        assert sorted(result.rendered.order) == sorted(item.unit.id for item in items)
        assert result.tokens.low <= result.tokens.value <= result.tokens.high
        assert sum(len(re.findall(r"<context \d{18}>\n", place.text)) for place in places(result.rendered.payload)) == 1


CHAT, RESPONSES, MESSAGES = chat_type(), responses_type(), messages_type()
