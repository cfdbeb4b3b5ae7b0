"""Which fields make which query, and what is refused before anything is read (R2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from time import monotonic
from typing import Any

import pytest

from adapters.registry import AdapterRegistry
from app.router.planner import Plan, Planner, type_of
from graph.model.errors import ApiNotOffered, BudgetTooSmall, InvalidBudget, LastroError, QueryNotSupported, UnknownModel
from graph.model.query import ContextQuery, QueryType, StrategyName
from graph.model.scope import AuthorizedScope, Principal, Role
from graph.model.units import Scope
from graph.order_keys import FOREVER_US, MAX_STEP, microseconds

GPT = "gpt-5.2"
PLANNER = Planner(AdapterRegistry(b"k" * 32, plugins=[]))


def plan_of(*, header_model: str | None = None, **query: Any) -> Plan:
    scope = AuthorizedScope(Principal("t", "a", Role.AGENT, "k", Scope(), model=header_model), None, None)
    return PLANNER.plan(ContextQuery(**query), scope, monotonic())


TRAVERSAL, RECENCY, TIERS = StrategyName.TRAVERSAL, StrategyName.RECENCY, StrategyName.TIERS
RETRIEVAL, TEXT, HYBRID = StrategyName.RETRIEVAL, StrategyName.TEXT, StrategyName.HYBRID
UNIT: dict[str, Any] = {"unit_id": "u"}
TASK: dict[str, Any] = {"task_id": "t"}
STEP: dict[str, Any] = {"task_id": "t", "step": 3}
SESSION: dict[str, Any] = {"session_id": "s"}
TOPIC: dict[str, Any] = {"topic": "what is slow"}


@pytest.mark.parametrize(
    ("fields", "named", "query_type", "strategies"),
    [
        (UNIT, "auto", QueryType.AROUND_UNIT, (TRAVERSAL, RECENCY)),
        (TASK, "auto", QueryType.AROUND_TASK, (TRAVERSAL, RECENCY)),
        (STEP, "auto", QueryType.STEP, (HYBRID, TRAVERSAL, RECENCY)),
        ({"task_id": "t", "step": 0}, "auto", QueryType.STEP, (HYBRID, TRAVERSAL, RECENCY)),
        (SESSION, "auto", QueryType.SESSION, (TIERS, RECENCY)),
        (UNIT, "traversal", QueryType.AROUND_UNIT, (TRAVERSAL, RECENCY)),
        (UNIT, "recency", QueryType.AROUND_UNIT, (RECENCY, TRAVERSAL)),
        (TASK, "recency", QueryType.AROUND_TASK, (RECENCY, TRAVERSAL)),
        (STEP, "recency", QueryType.STEP, (RECENCY, HYBRID, TRAVERSAL)),
        (TOPIC, "auto", QueryType.TOPIC, (RETRIEVAL, TEXT)),
        (TOPIC, "text", QueryType.TOPIC, (TEXT, RETRIEVAL)),
        (TOPIC, "hybrid", QueryType.TOPIC, (HYBRID, RETRIEVAL, TEXT)),
        ({**TOPIC, **TASK}, "auto", QueryType.TOPIC_AROUND, (HYBRID, TEXT, RECENCY)),
        ({**TOPIC, **UNIT}, "auto", QueryType.TOPIC_AROUND, (HYBRID, TEXT, RECENCY)),
        ({**TOPIC, **STEP}, "traversal", QueryType.TOPIC_AROUND, (TRAVERSAL, HYBRID, TEXT, RECENCY)),
        ({**TOPIC, **SESSION}, "retrieval", QueryType.TOPIC_AROUND, (RETRIEVAL, HYBRID, TEXT, RECENCY)),
        (SESSION, "recency", QueryType.SESSION, (RECENCY, TIERS)),
    ],
)
def test_fields_decide_the_type_and_the_type_the_strategies(
    fields: dict[str, Any], named: str, query_type: QueryType, strategies: tuple[StrategyName, ...]
) -> None:
    plan = plan_of(**fields, strategy=StrategyName(named))
    assert (plan.query_type, plan.strategies) == (query_type, strategies)
    assert ("the caller named it" in plan.why) == (strategies[0] is not plan_of(**fields).strategies[0])


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({}, QueryNotSupported),
        (UNIT | TASK, QueryNotSupported),
        (UNIT | SESSION, QueryNotSupported),
        (TASK | SESSION, QueryNotSupported),
        (UNIT | TASK | SESSION, QueryNotSupported),
        ({"step": 1}, QueryNotSupported),
        (UNIT | {"step": 1}, QueryNotSupported),
        (SESSION | {"step": 1}, QueryNotSupported),
        (STEP | UNIT, QueryNotSupported),
        (STEP | SESSION, QueryNotSupported),
        (SESSION | {"strategy": StrategyName.TRAVERSAL}, QueryNotSupported),
        (TASK | {"strategy": StrategyName.RETRIEVAL}, QueryNotSupported),
        (TASK | {"strategy": StrategyName.TIERS}, QueryNotSupported),
        (TOPIC | {"strategy": StrategyName.RECENCY}, QueryNotSupported),
        (TOPIC | UNIT | TASK, QueryNotSupported),
        (TASK | {"model": "no-such-model"}, UnknownModel),
        (TASK | {"model": GPT, "api": "messages"}, ApiNotOffered),
        (TASK | {"api": "responses"}, QueryNotSupported),
        (TASK | {"model": GPT, "budget_tokens": 10_000_000}, InvalidBudget),
        (TASK | {"model": GPT, "budget_tokens": 1}, BudgetTooSmall),
    ],
)
def test_what_makes_no_query_is_refused(fields: dict[str, Any], refusal: type[LastroError]) -> None:
    with pytest.raises(refusal):
        plan_of(**fields)


def test_the_model_of_the_query_comes_before_the_headers() -> None:
    assert plan_of(**TASK, header_model=GPT).model == GPT
    claude = plan_of(**TASK, header_model=GPT, model="claude-opus-4-8")
    assert claude.model == "claude-opus-4-8"
    assert claude.adapter is not plan_of(**TASK, header_model=GPT).adapter
    assert (plan_of(**TASK).model, plan_of(**TASK).adapter) == ("", None)


def test_the_callers_session_is_the_requests_or_else_the_one_asked_about() -> None:
    def session(principal: str | None, asked: str | None) -> str | None:
        scope = AuthorizedScope(Principal("t", "a", Role.AGENT, "k", Scope(), session_id=principal), None, None)
        query = ContextQuery(session_id=asked) if asked is not None else ContextQuery(task_id="t")
        return PLANNER.plan(query, scope, monotonic()).session_id

    assert (session("s-1", "s-2"), session(None, "s-2"), session("s-1", None), session(None, None)) == ("s-1", "s-2", "s-1", None)


def test_a_named_api_has_its_own_adapter() -> None:
    chat, responses = plan_of(**TASK, model=GPT), plan_of(**TASK, model=GPT, api="responses")
    assert chat.adapter is not responses.adapter
    assert plan_of(**TASK, model=f"responses/{GPT}").adapter is responses.adapter


def test_without_a_payload_there_is_no_frame_to_pay_for() -> None:
    assert plan_of(**TASK, model=GPT).base_tokens() > 0
    assert plan_of(**TASK, model=GPT, render=False, budget_tokens=1).base_tokens() == 0
    assert plan_of(**TASK, budget_tokens=1).base_tokens() == 0


def test_a_longer_question_leaves_less_for_units() -> None:
    assert plan_of(**TASK, model=GPT, question="Why? " * 50).base_tokens() > plan_of(**TASK, model=GPT).base_tokens()


def test_the_window_is_what_was_asked_or_everything() -> None:
    assert plan_of(**UNIT).window == plan_of(**SESSION).window
    assert (plan_of(**UNIT).window.step, plan_of(**UNIT).window.as_of_us) == (MAX_STEP, FOREVER_US)
    at = datetime(2026, 3, 4, 8, 6, 7, tzinfo=timezone(-timedelta(hours=3)))
    window = plan_of(**STEP, as_of=at).window
    assert (window.task_id, window.step, window.as_of_us) == ("t", 3, microseconds(at.astimezone(UTC)))


def test_the_deadline_counts_from_when_the_request_came() -> None:
    scope = AuthorizedScope(Principal("t", "a", Role.AGENT, "k", Scope()), None, None)
    late = PLANNER.plan(ContextQuery(task_id="t", deadline_ms=500), scope, monotonic() - 2)
    assert late.remaining_s == 0
    assert 59 < plan_of(**TASK, deadline_ms=60_000).remaining_s <= 60


def test_every_type_of_query_has_a_route_and_fields() -> None:
    assert {type_of(ContextQuery(**fields)) for fields in (UNIT, TASK, STEP, SESSION, TOPIC, TOPIC | TASK)} == set(QueryType)
