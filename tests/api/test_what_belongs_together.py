"""A call and its results, a unit and what it depends on, the old and what replaced it: never one without the other (S1, R6, A7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from api.wire import CLAUDE, GPT, ask, call, ids, inquire, lineage, of_all_sessions, refused, result, stored, tokens_of_chat
from conftest import Service, edge, unit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

STEPS = 24


def run() -> list[dict[str, Any]]:
    """A run of calls with one to three results of different lengths, a decision that depends on an earlier result every fourth step,
    a constraint, and a correction.
    """
    units = [unit("rule", "Never restart the primary during business hours.", "constraint", task_id="t", task_step=0)]
    for step in range(1, STEPS):
        before = [edge(f"c{step - 1:02}")] if step > 1 else [edge("rule")]
        units.append(call(f"c{step:02}", step, task_id="t", relations=before))
        units += [
            result(
                f"r{step:02}-{part}", f"c{step:02}", step, f"Line {part} of step {step}. " * (1 + (step * 7 + part * 5) % 23), task_id="t"
            )
            for part in range(1 + step % 3)
        ]
        if step % 4 == 0:
            needs = [edge(f"r{step - 3:02}-0", "dependency"), edge(f"d{step - 4:02}", "dependency") if step > 4 else edge("rule")]
            units.append(
                unit(f"d{step:02}", f"Decided at {step}: " + "carry on. " * step, "decision", task_id="t", task_step=step, relations=needs)
            )
    units.append(
        unit(
            "fix",
            "The reading of step 6 was of the wrong host.",
            "correction",
            task_id="t",
            task_step=20,
            relations=[edge("r06-0", "supersession")],
        )
    )
    return units


@pytest.fixture(scope="module")
def stored_run(service: Service) -> Iterator[httpx2.Client]:
    with service.client(service.key(f"run-{service.engine_name}"), session="session-1") as client:
        if client.get("/v1/units/rule").status_code == 404:
            stored(client, *run())
        yield client


RUN = {item["id"]: item for item in run()}
RESULTS = {name: [other for other in RUN if other.startswith(f"r{name[1:]}-")] for name in RUN if name.startswith("c")}
NEEDS = {name: [to["target_id"] for to in item.get("relations", []) if to["edge_type"] == "dependency"] for name, item in RUN.items()}


def check_whole(answer: dict[str, Any]) -> None:
    shown = set(ids(answer["units"]))
    for name, results in RESULTS.items():
        together = {name, *results}
        assert together <= shown or not together & shown, f"{name} was split from its results"
    for name in shown:
        for needed in NEEDS[name]:
            # What was replaced is stood in for by what replaced it.
            assert needed in shown or (needed == "r06-0" and "fix" in shown), f"{name} came without {needed}"
    assert len(shown) == len(answer["units"])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    budget=st.integers(280, 6_000),
    step=st.none() | st.integers(0, STEPS),
    model=st.sampled_from([GPT, CLAUDE, None]),
    history=st.booleans(),
)
def test_no_budget_splits_what_belongs_together(
    stored_run: httpx2.Client, budget: int, step: int | None, model: str | None, history: bool
) -> None:
    query = {"step": step} if step is not None else {}
    answer = ask(stored_run, task_id="t", budget_tokens=budget, model=model, include_history=history, **query)
    check_whole(answer)
    assert answer["consumption"]["tokens"]["value"] <= budget
    if model == GPT:
        assert tokens_of_chat(answer["rendered"]["payload"]) == answer["consumption"]["tokens"]["value"]
    if step is not None:
        assert all(item["metadata"]["task_step"] <= step for item in answer["units"])


@pytest.mark.parametrize("model", [GPT, CLAUDE])
def test_neither_does_a_question_around_a_unit_or_a_session(stored_run: httpx2.Client, model: str) -> None:
    for query in ({"unit_id": "r09-0"}, {"unit_id": "c09"}, {"unit_id": "d20"}, {"session_id": "session-1"}):
        for budget in (300, 700, 2_000):
            check_whole(ask(stored_run, **query, budget_tokens=budget, model=model))


def test_a_pair_stands_together_in_the_payload_too(stored_run: httpx2.Client) -> None:
    for model in (GPT, CLAUDE):
        answer = ask(stored_run, task_id="t", budget_tokens=3_000, model=model)
        order = answer["rendered"]["order"]
        for name, results in RESULTS.items():
            if name in order:
                places = sorted(order.index(member) for member in (name, *results))
                assert places == list(range(places[0], places[0] + len(places)))


def test_a_result_whose_call_comes_in_a_later_batch_is_a_pair_as_well(client: httpx2.Client) -> None:
    stored(client, call("c", 1, task_id="t"))
    stored(client, result("r", "c", 1, "Found three hosts.", task_id="t"))
    stored(client, result("r2", "c", 1, "Found a fourth.", task_id="other"))
    answer = ask(client, unit_id="r")
    assert sorted(ids(answer["units"])) == ["c", "r", "r2"]
    reasons = {item["id"]: item["reason"] for item in answer["units"]}
    assert reasons["r"] == "start"


def test_a_pair_too_large_for_the_budget_is_left_out_whole(client: httpx2.Client) -> None:
    stored(client, call("c", 1, task_id="t"), result("r", "c", 1, "A long line. " * 500, task_id="t"), unit("small", "Short.", task_id="t"))
    answer = ask(client, task_id="t", budget_tokens=400, model=GPT)
    assert ids(answer["units"]) == ["small"]
    assert {item["id"]: item["reason"] for item in answer["receipt"]["left_out"]} == {"c": "budget", "r": "budget"}


def test_a_chain_of_dependencies_comes_whole_or_not_at_all(client: httpx2.Client) -> None:
    chain = [
        unit(f"u{n}", f"Part {n} of the plan. " * 8, task_id="t", relations=[edge(f"u{n - 1}", "dependency")] if n else [])
        for n in range(6)
    ]
    stored(client, *chain)
    whole = ask(client, unit_id="u5", budget_tokens=5_000)
    assert sorted(ids(whole["units"])) == [f"u{n}" for n in range(6)]
    for budget in (60, 120, 200, 300):
        shown = ids(ask(client, unit_id="u5", budget_tokens=budget)["units"])
        assert shown == [] or sorted(shown) == [f"u{n}" for n in range(len(shown))]


def test_what_depends_on_something_retracted_does_not_come_without_it(client: httpx2.Client) -> None:
    stored(
        client,
        unit("taken-back", "The disk was full.", epistemic_status="retracted", task_id="t"),
        unit("built-on-it", "So we grew the disk.", "decision", relations=[edge("taken-back", "dependency")], task_id="t"),
        unit("caused", "The disk is larger.", relations=[edge("built-on-it")], task_id="t"),
    )
    answer = ask(client, task_id="t")
    assert ids(answer["units"]) == ["caused"]
    assert answer["receipt"]["left_out_counts"] == {"incomplete": 1, "retracted": 1}


def test_a_retracted_unit_is_in_no_answer(client: httpx2.Client) -> None:
    stored(
        client, unit("a", "Wrong.", epistemic_status="retracted", task_id="t", task_step=1), unit("b", "Right.", task_id="t", task_step=2)
    )
    for query in ({"task_id": "t"}, {"task_id": "t", "step": 2}, {"session_id": "session-1"}, {"task_id": "t", "strategy": "recency"}):
        for history in (False, True):
            answer = ask(client, **query, include_history=history)
            assert ids(answer["units"]) == ["b"]
            assert answer["receipt"]["left_out_counts"] == {"retracted": 1}
    assert ids(ask(client, unit_id="a")["units"]) == []


# --- supersession ---------------------------------------------------------------------------------------------------------------


QUERIES: list[dict[str, Any]] = [
    {"task_id": "t"},
    {"task_id": "t", "step": 9},
    {"task_id": "t", "strategy": "recency"},
    {"session_id": "session-1"},
    {"unit_id": "v1"},
]


def version(n: int, *before: int, **more: Any) -> dict[str, Any]:
    return unit(
        f"v{n}", f"Version {n}.", "correction", task_id="t", task_step=n, relations=[edge(f"v{m}", "supersession") for m in before], **more
    )


@pytest.mark.parametrize("query", QUERIES)
def test_only_the_last_of_a_chain_is_shown_unless_history_was_asked_for(client: httpx2.Client, query: dict[str, Any]) -> None:
    stored(client, version(1), version(2, 1), version(3, 2))
    answer = ask(client, **query)
    assert ids(answer["units"]) == ["v3"]
    assert {item["id"]: item["reason"] for item in answer["receipt"]["left_out"]} == {"v1": "superseded", "v2": "superseded"}
    assert sorted(ids(ask(client, **query, include_history=True)["units"])) == ["v1", "v2", "v3"]


def test_what_replaced_a_unit_long_after_is_shown_in_its_place_and_says_how(client: httpx2.Client) -> None:
    stored(client, unit("v1", "Version 1.", task_id="t"))
    stored(client, unit("v2", "Version 2.", "correction", relations=[edge("v1", "supersession")], session_id="another"))
    answer = ask(of_all_sessions(client), task_id="t")
    assert ids(answer["units"]) == ["v2"]
    path = ask(client, task_id="t", strategy="recency")["units"][0]["path"]
    assert path == [{"from_id": "v1", "edge_type": "supersession", "direction": "in", "to_id": "v2"}]


def test_of_several_that_replace_one_the_last_recorded_stands_in(client: httpx2.Client) -> None:
    stored(client, unit("v1", "Version 1."))
    stored(client, unit("v2", "Version 2.", relations=[edge("v1", "supersession")], session_id="s2", timestamp="2040-01-01T00:00:00Z"))
    stored(client, unit("v3", "Version 3.", relations=[edge("v1", "supersession")], session_id="s2", timestamp="2000-01-01T00:00:00Z"))
    of_all_sessions(client)
    assert ids(ask(client, session_id="session-1")["units"]) == ["v3"]
    assert ids(ask(client, session_id="s2")["units"]) == ["v2", "v3"], "neither replaces the other"


def test_one_that_replaces_several(client: httpx2.Client) -> None:
    stored(client, version(1), version(2), version(3, 1, 2))
    assert ids(ask(client, task_id="t")["units"]) == ["v3"]


def test_a_retracted_correction_replaces_nothing(client: httpx2.Client) -> None:
    stored(client, version(1), version(2, 1, epistemic_status="retracted"))
    assert ids(ask(client, task_id="t")["units"]) == ["v1"]
    stored(client, version(3, 2))
    assert sorted(ids(ask(client, task_id="t")["units"])) == ["v1", "v3"]


def test_a_dependency_on_what_was_replaced_brings_what_replaced_it(client: httpx2.Client) -> None:
    stored(client, version(1), unit("plan", "Do as version 1 says.", "decision", relations=[edge("v1", "dependency")], task_id="other"))
    stored(client, version(2, 1))
    answer = ask(client, unit_id="plan")
    assert ids(answer["units"]) == ["v2", "plan"] or sorted(ids(answer["units"])) == ["plan", "v2"]
    assert "v1" in ids(ask(client, unit_id="plan", include_history=True)["units"])


def test_more_than_eight_that_replace_one_still_replace_it(client: httpx2.Client) -> None:
    stored(client, version(1))
    for n in range(2, 13):
        stored(client, version(n, 1))
    assert "v1" not in ids(ask(client, task_id="t")["units"])
    assert len(lineage(client, "v1", direction="after", depth=1)["units"]) == 12


def test_a_correction_of_a_later_step_does_not_replace_anything_before_it(client: httpx2.Client) -> None:
    stored(client, version(1), version(9, 1))
    for strategy in ("traversal", "recency"):
        assert ids(ask(client, task_id="t", step=8, strategy=strategy)["units"]) == ["v1"]
        assert ids(ask(client, task_id="t", step=9, strategy=strategy)["units"]) == ["v9"]


def test_a_result_of_a_later_step_is_not_known_yet(client: httpx2.Client) -> None:
    stored(client, call("c", 3, task_id="t"), result("r", "c", 4, "Three hosts.", task_id="t"))
    assert ids(ask(client, task_id="t", step=3)["units"]) == ["c"]
    assert sorted(ids(ask(client, task_id="t", step=4)["units"])) == ["c", "r"]


def test_a_unit_of_another_kind_does_not_come_in_by_replacing(client: httpx2.Client) -> None:
    stored(
        client,
        unit("v1", "Old.", "decision", task_id="t"),
        unit("v2", "New.", "correction", task_id="t", relations=[edge("v1", "supersession")]),
    )
    assert ids(ask(client, task_id="t", kinds=["decision"])["units"]) == ["v2"]
    assert ids(ask(client, task_id="t", kinds=["observation"])["units"]) == []
    refused(inquire(client, unit_id="v3"), 404, "not_found")
