"""A2: what a query says about its payload: which API, tool calls as native pairs, a beginning that stays the same."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from api.wire import CLAUDE, GPT, ask, call, inquire, of_all_sessions, refused, result, send, stored
from conftest import unit

from app.router.rendering import NO_SESSION

TASK = "task-1"


@pytest.fixture
def task(client: httpx2.Client) -> httpx2.Client:
    """A call with its result, and what was said before."""
    stored(
        client,
        unit("said", "The customer wants to change the order.", task_id=TASK, task_step=1),
        call("c-1", 2, task_id=TASK),
        result("r-1", "c-1", 2, "The order is pending.", task_id=TASK),
    )
    return client


def rendered(client: httpx2.Client, **query: Any) -> dict[str, Any]:
    return ask(client, task_id=TASK, question="What next?", **{"model": GPT, **query})["rendered"]


def test_the_query_or_the_models_prefix_chooses_the_api(task: httpx2.Client) -> None:
    assert rendered(task)["api"] == "openai.chat.completions"
    for query in ({"api": "responses"}, {"model": f"responses/{GPT}"}):
        told = rendered(task, **query)
        assert told["api"] == "openai.responses"
        assert told["payload"]["model"] == GPT
        assert [item["role"] for item in told["payload"]["input"]] == ["user", "user"]
    refused(inquire(task, task_id=TASK, model=GPT, api="messages"), 422, "api_not_offered", field="api")
    refused(inquire(task, task_id=TASK, api="responses"), 422, "query_not_supported", field="api")
    refused(send(task, "/v1/context", {"task_id": TASK, "tool_pairs": "both"}), 422, "invalid_field")


@pytest.mark.parametrize(
    ("model", "turns"), [(GPT, ["developer", "user", "assistant", "tool", "user"]), (CLAUDE, ["user", "assistant", "user"])]
)
def test_calls_of_the_callers_own_session_are_told_natively_when_that_is_asked(task: httpx2.Client, model: str, turns: list[str]) -> None:
    told = rendered(task, model=model, tool_pairs="native")
    assert [message["role"] for message in told["payload"]["messages"]] == turns
    assert sorted(told["order"]) == ["c-1", "r-1", "said"]
    assert told["order"][-2:] == ["c-1", "r-1"]
    assert "answers c-1" in json.dumps(told["payload"])
    fenced = rendered(task, model=model)
    assert all(message["role"] not in {"assistant", "tool"} for message in fenced["payload"]["messages"])


def test_without_a_session_nothing_is_the_callers_own(task: httpx2.Client) -> None:
    assert NO_SESSION not in rendered(task, tool_pairs="native")["notes"]
    everywhere = of_all_sessions(task)
    answer = ask(everywhere, task_id=TASK, question="What next?", model=GPT, tool_pairs="native")
    assert [message["role"] for message in answer["rendered"]["payload"]["messages"]] == ["developer", "user", "user"]
    assert NO_SESSION in answer["rendered"]["notes"]
    assert NO_SESSION in answer["receipt"]["notes"]
    assert NO_SESSION not in rendered(everywhere)["notes"]


@pytest.mark.parametrize("pairs", ["fenced", "native"])
@pytest.mark.parametrize("stable", [False, True])
def test_every_budget_is_kept(task: httpx2.Client, pairs: str, stable: bool) -> None:
    for model in (GPT, CLAUDE, "gemini-3-pro", "deepseek-v4", "openai-compatible/m"):
        for budget in (260, 300, 400):
            answer = ask(task, task_id=TASK, model=model, budget_tokens=budget, tool_pairs=pairs, stable_prefix=stable)
            assert answer["consumption"]["tokens"]["value"] <= budget


def test_a_stable_prefix_grows_at_its_end(task: httpx2.Client) -> None:
    before = rendered(task, stable_prefix=True, budget_tokens=4_000)["payload"]["messages"][1]["content"]
    stored(task, unit("later", "The customer confirmed.", task_id=TASK, task_step=3))
    after = rendered(task, stable_prefix=True, budget_tokens=4_000)["payload"]["messages"][1]["content"]
    body = before[: before.rindex("\n</context ")]
    assert after.startswith(body)
    assert "The customer confirmed." in after.removeprefix(body)
