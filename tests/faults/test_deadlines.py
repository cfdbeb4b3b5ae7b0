"""A strategy that is too slow: another one answers and the receipt says so, or nobody does and that is said; never an empty answer (R3)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, cast

import httpx2
import pytest
from api.wire import call, refused, result, send, stored
from conftest import unit

from adapters.registry import AdapterRegistry
from app.router.planner import TIME_SHARES, Plan, Planner
from app.strategies.concurrency import Concurrency
from app.strategies.retrieval import Retrieval
from app.strategies.runner import Outcome, StrategyRunner
from graph.model.candidates import Found
from graph.model.errors import DatabaseUnavailable, DeadlineExceeded, NotFound
from graph.model.query import ContextQuery, StrategyName
from graph.model.scope import AuthorizedScope, Principal, Role
from graph.model.units import Scope

pytestmark = [
    pytest.mark.anyio,
    # The driver leaves a socket whose connecting was cancelled to the garbage collector (6.4.1, AsyncBoltSocket._connect_secure).
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
PLANNER = Planner(AdapterRegistry(b"k" * 32, plugins=[]))
Answering = Callable[[Plan, float], Awaitable[Found]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def plan_of(deadline_ms: int = 400, **query: Any) -> Plan:
    scope = AuthorizedScope(Principal("t", "a", Role.AGENT, "k", Scope()), None, None)
    asked: dict[str, Any] = {"task_id": "t", "deadline_ms": deadline_ms, **query}
    return PLANNER.plan(ContextQuery(**asked), scope, monotonic())


def runner_of(**strategies: Answering) -> StrategyRunner:
    """A runner whose strategies are these."""
    return limited_runner_of(Concurrency(100), **strategies)


def limited_runner_of(concurrency: Concurrency, **strategies: Answering) -> StrategyRunner:
    """The same where only so many may be at work."""
    retrieval = cast("Any", Retrieval.__new__(Retrieval))
    runner = StrategyRunner(cast("Any", None), cast("Any", None), cast("Any", None), retrieval, concurrency)
    vars(runner)["_by_name"] = {StrategyName(name): strategy for name, strategy in strategies.items()}
    return runner


async def slow(_: Plan, deadline_s: float) -> Found:
    """As the gateway does: it ends at the deadline that it was given."""
    await asyncio.sleep(deadline_s)
    raise DeadlineExceeded


async def quick(_: Plan, deadline_s: float) -> Found:
    assert deadline_s > 0
    return Found()


async def test_a_slow_strategy_gives_way_to_its_fallback() -> None:
    plan = plan_of()
    outcome = await runner_of(traversal=slow, recency=quick).run(plan)
    assert outcome.strategy is StrategyName.RECENCY
    assert [(attempt.strategy, attempt.outcome) for attempt in outcome.attempts] == [("traversal", "timed_out"), ("recency", "answered")]
    assert "no answer within" in outcome.attempts[0].reason
    assert outcome.attempts[0].ms >= 0.9 * 400 * TIME_SHARES[StrategyName.TRAVERSAL]
    assert plan.remaining_s > 0, "there is time left to load and to render"


async def test_when_all_are_slow_it_is_said_before_the_deadline() -> None:
    plan = plan_of()
    with pytest.raises(DeadlineExceeded):
        await runner_of(traversal=slow, recency=slow).run(plan)
    assert plan.remaining_s >= 0


async def in_a_place(concurrency: Concurrency, runner: StrategyRunner, plan: Plan) -> Outcome:
    async with concurrency.place(plan.scope.tenant_id, plan.remaining_s):
        return await runner.run(plan)


async def searched(concurrency: Concurrency, runner: StrategyRunner, deadline_ms: int, times: int) -> list[Outcome]:
    asked = [in_a_place(concurrency, runner, plan_of(deadline_ms, task_id=None, topic="x")) for _ in range(times)]
    return await asyncio.gather(*asked)


async def test_a_search_that_would_be_late_beside_others_is_not_begun_and_something_quicker_answers() -> None:
    begun = 0

    async def searching(_: Plan, deadline_s: float) -> Found:
        nonlocal begun
        begun += 1
        await asyncio.sleep(0.15)
        return Found()

    concurrency = Concurrency(100)
    runner = limited_runner_of(concurrency, retrieval=searching, text=quick)
    assert (await searched(concurrency, runner, 400, 1))[0].strategy is StrategyName.RETRIEVAL
    begun = 0
    outcomes = await searched(concurrency, runner, 200, 6)
    assert [outcome.strategy for outcome in outcomes] == [StrategyName.RETRIEVAL, *[StrategyName.TEXT] * 5], "who is alone begins"
    told = outcomes[-1].attempts
    assert [(attempt.strategy, attempt.outcome) for attempt in told] == [("retrieval", "not_begun"), ("text", "answered")]
    assert begun == 1
    assert {outcome.strategy for outcome in await searched(concurrency, runner, 4_000, 4)} == {StrategyName.RETRIEVAL}, (
        "who has time begins"
    )


async def test_what_was_slow_once_is_tried_again_though_there_is_always_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.strategies.concurrency.FORGOTTEN_S", 0.1)
    concurrency = Concurrency(100)
    await searched(concurrency, limited_runner_of(concurrency, retrieval=slow, text=quick), 400, 3)
    runner = limited_runner_of(concurrency, retrieval=quick, text=quick)
    async with concurrency.place("t", 1):
        assert (await searched(concurrency, runner, 400, 1))[0].strategy is StrategyName.TEXT
        await asyncio.sleep(0.2)
        assert (await searched(concurrency, runner, 400, 1))[0].strategy is StrategyName.RETRIEVAL


async def test_tenants_take_turns_and_whoever_leaves_gives_the_place_on() -> None:
    concurrency = Concurrency(1)
    order: list[str] = []

    async def working(tenant: str) -> None:
        async with concurrency.place(tenant, 5):
            order.append(tenant)
            await asyncio.sleep(0.001)

    async with concurrency.place("first", 1):
        waiting = [asyncio.create_task(working(tenant)) for tenant in ["crowd"] * 20 + ["small"] * 2]
        await asyncio.sleep(0)
        for leaving in (waiting[0], waiting[5]):
            leaving.cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*waiting, return_exceptions=True)
    assert order.count("crowd") == 18
    assert sorted(order[:4]) == ["crowd", "crowd", "small", "small"], "twenty before it are not twenty turns"
    async with concurrency.place("later", 0.01):
        pass


async def test_places_are_given_in_turn_and_given_back_and_who_waits_too_long_is_told() -> None:
    async def working(_: Plan, deadline_s: float) -> Found:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.1)
        at_once -= 1
        raise NotFound

    at_once = most = 0
    concurrency = Concurrency(2)
    runner = limited_runner_of(concurrency, traversal=working, recency=quick)
    told = await asyncio.gather(*(in_a_place(concurrency, runner, plan_of(1_000)) for _ in range(30)), return_exceptions=True)
    in_time = [type(error) for error in told].index(DeadlineExceeded)
    assert most == 2
    assert 2 <= in_time <= 14, "665 ms of waiting are enough for seven pairs"
    assert {type(error) for error in told[:in_time]} == {NotFound}
    assert {type(error) for error in told[in_time:]} == {DeadlineExceeded}, "who came later did not go before"
    assert isinstance((await asyncio.gather(in_a_place(concurrency, runner, plan_of()), return_exceptions=True))[0], NotFound)


async def test_one_that_is_alone_begins_whatever_it_took_before() -> None:
    concurrency = Concurrency(3)
    runner = limited_runner_of(concurrency, traversal=slow, recency=quick)
    for _ in range(2):
        assert (await in_a_place(concurrency, runner, plan_of(100))).strategy is StrategyName.RECENCY
    runner = limited_runner_of(concurrency, traversal=quick, recency=quick)
    assert (await in_a_place(concurrency, runner, plan_of(100))).strategy is StrategyName.TRAVERSAL


async def test_the_caller_may_turn_them_round() -> None:
    outcome = await runner_of(traversal=quick, recency=slow).run(plan_of(strategy=StrategyName.RECENCY))
    assert outcome.strategy is StrategyName.TRAVERSAL


async def test_each_strategy_gets_its_share_and_there_is_no_empty_answer() -> None:
    allowed: list[float] = []

    async def noting(_: Plan, deadline_s: float) -> Found:
        allowed.append(deadline_s)
        raise DeadlineExceeded

    asked: list[tuple[dict[str, Any], StrategyName, StrategyName]] = [
        ({"task_id": "t"}, StrategyName.TRAVERSAL, StrategyName.RECENCY),
        ({"task_id": None, "session_id": "s"}, StrategyName.TIERS, StrategyName.RECENCY),
        ({"task_id": None, "topic": "x"}, StrategyName.RETRIEVAL, StrategyName.TEXT),
    ]
    for query, first, second in asked:
        allowed.clear()
        with pytest.raises(DeadlineExceeded):
            await runner_of(**{first: noting, second: noting}).run(plan_of(**query))
        assert len(allowed) == 2
        assert allowed[0] <= 0.4 * TIME_SHARES[first]
        assert allowed[1] <= 0.4 * TIME_SHARES[second]


@pytest.mark.parametrize("failure", [NotFound, DatabaseUnavailable])
async def test_what_is_no_time_out_is_not_covered_by_a_fallback(failure: type[Exception]) -> None:
    async def failing(_: Plan, deadline_s: float) -> Found:
        raise failure

    with pytest.raises(failure):
        await runner_of(traversal=failing, recency=quick).run(plan_of())


def test_any_deadline_gives_units_or_says_that_it_passed(client: httpx2.Client) -> None:
    """For real: from one millisecond, in which nothing can be done, to enough for everything."""
    units: list[dict[str, Any]] = [unit("limit", "Not by day.", "constraint", task_id="t")]
    for step in range(60):
        units.append(call(f"c{step}", step, task_id="t", relations=[{"target_id": units[-1]["id"], "edge_type": "causation"}]))
        units.append(result(f"r{step}", f"c{step}", step, f"Result {step}.", task_id="t"))
    stored(client, *units)
    seen: Counter[str] = Counter()
    for deadline_ms in (1, 2, 4, 7, 10, 15, 20, 25, 30, 60, 20_000):
        for query in (
            {"task_id": "t"},
            {"unit_id": "r30"},
            {"session_id": "session-1"},
            {"topic": "Result 30"},
            {"task_id": "t", "step": 30},
            {"task_id": "t", "topic": "Result"},
        ):
            answer = send(client, "/v1/context", {**query, "deadline_ms": deadline_ms, "model": "gpt-5.2"})
            if answer.status_code == 504:
                refused(answer, 504, "deadline_exceeded")
                seen["passed"] += 1
                continue
            assert answer.status_code == 200, answer.text
            told = answer.json()
            receipt = told["receipt"]
            assert told["units"], "an answer that ran out of time is never an empty one"
            assert receipt["fallback"] == (receipt["attempts"][0]["outcome"] == "timed_out")
            if receipt["fallback"]:
                assert receipt["strategy"] != receipt["attempts"][0]["strategy"]
                assert receipt["attempts"][0]["reason"]
            seen["fallback" if receipt["fallback"] else "answered"] += 1
    assert seen["passed"], seen
    assert seen["answered"], seen
