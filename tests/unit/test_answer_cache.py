"""The cache by itself: whoever fails is followed by another, everybody keeps its own deadline, and it stays within its bounds (R4)."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest

from adapters.registry import AdapterRegistry
from app.router.cache import NOT_BY_VALUE, AnswerCache, CacheState, Made, given, key_of
from app.router.planner import Plan, Planner
from graph.model.answer import Attempt, Consumption, ContextAnswer, CountMethod, Receipt, TokenCount, TokenParts
from graph.model.errors import DeadlineExceeded, NotFound
from graph.model.policy import Standing
from graph.model.query import ContextQuery, QueryType, StrategyName
from graph.model.scope import FOREVER, AuthorizedScope, Principal, Role
from graph.model.units import Scope
from graph.tenant_lock import LOCAL_KEY_ID, OIDC_KEY_ID

pytestmark = pytest.mark.anyio
PLANNER = Planner(AdapterRegistry(b"k" * 32, plugins=[]))
ASKER = Principal("t", "a", Role.AGENT, "0123456789abcdef", Scope(), epoch=1)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def plan_of(principal: Principal = ASKER, *, holds_until: datetime = FOREVER, deadline_ms: int = 5_000, **query: Any) -> Plan:
    scope = AuthorizedScope(principal, None, None, {}, holds_until)
    asked: dict[str, Any] = {"task_id": "t", "deadline_ms": deadline_ms, **query}
    return PLANNER.plan(ContextQuery(**asked), scope, monotonic())


def made(name: str = "an answer", *, outcome: str = "answered", fallback: bool = False, until: datetime | None = None) -> Made:
    count = TokenCount(value=1, method=CountMethod.EXACT, low=1, high=1, tokenizer="o200k_base", parts=TokenParts(content=1, framing=0))
    receipt = Receipt(
        trace_id="0" * 32,
        query_type=QueryType.AROUND_TASK,
        strategy=StrategyName.TRAVERSAL,
        why=name,
        attempts=[Attempt(strategy=StrategyName.TRAVERSAL, outcome=outcome, ms=1)],
        fallback=fallback,
        candidates=0,
        hubs_sampled=False,
        left_out=[],
        left_out_counts={},
        budget_tokens=1,
        budget_used=1,
        deadline_ms=1,
        timings_ms={},
    )
    answer = ContextAnswer(
        units=[], relations=[], rendered=None, consumption=Consumption(tokens=count, units=0, compression=1), receipt=receipt
    )
    return Made(answer, {}, 0, until)


async def ask(cache: AnswerCache, plan: Plan, answer: Made | None = None, *, takes_s: float = 0.0) -> tuple[str, Made]:
    """What one request does: take what is there, or make it. It fails where there is no answer to make."""
    async with cache.once(plan) as turn:
        if turn.made is None:
            await asyncio.sleep(takes_s)
            if answer is None:
                raise NotFound
            turn.made = answer
    return turn.state.value, turn.made


def cache_of(ttl_s: float = 60, answers: int = 100, most_bytes: int = 1_000_000) -> AnswerCache:
    return AnswerCache(ttl_s, answers, most_bytes)


async def test_an_answer_lives_for_its_time_and_leaves_memory_when_that_is_over() -> None:
    cache = cache_of(ttl_s=0.3)
    assert await ask(cache, plan_of(), made()) == ("miss", made())
    assert (await ask(cache, plan_of()))[0] == "hit"
    await asyncio.sleep(0.2)
    await ask(cache, plan_of(task_id="t2"), made())
    await asyncio.sleep(0.15)
    assert cache.answers == 1, "nobody asked, and the first is gone"
    assert (await ask(cache, plan_of(), made("anew")))[0] == "miss"
    await asyncio.sleep(0.4)
    assert (cache.answers, cache.bytes) == (0, 0)


async def test_an_answer_holds_for_one_epoch_and_an_older_one_takes_no_place() -> None:
    cache = cache_of()
    older, newer = plan_of(), plan_of(replace(ASKER, epoch=2))
    await ask(cache, older, made("older"))
    assert (await ask(cache, newer, made("newer")))[0] == "miss"
    assert await ask(cache, newer) == ("hit", made("newer"))
    assert await ask(cache, older, made("late")) == ("miss", made("late")), "asked before the change and made after it"
    assert await ask(cache, newer) == ("hit", made("newer"))
    assert cache.answers == 1


async def test_nothing_is_served_beyond_the_time_of_a_policy_or_of_a_unit() -> None:
    cache = cache_of()
    soon = datetime.now(UTC) + timedelta(seconds=0.3)
    before = plan_of(holds_until=soon)
    await ask(cache, before, made("with a policy"))
    await ask(cache, plan_of(task_id="t2"), made("with a unit", until=soon))
    assert (await ask(cache, before))[0] == (await ask(cache, plan_of(task_id="t2")))[0] == "hit"
    assert (await ask(cache, plan_of(), made("after it")))[0] == "miss", "who comes after the policy's end asks for something else"
    await asyncio.sleep(0.35)
    assert (await ask(cache, before, made()))[0] == "miss", "let in before, and slow"
    assert (await ask(cache, plan_of(task_id="t2"), made()))[0] == "miss"


@pytest.mark.parametrize("partial", [made(fallback=True), made(outcome="timed_out"), made(outcome="failed")])
async def test_what_could_be_had_in_time_is_shared_by_those_who_wait_and_not_kept(partial: Made) -> None:
    cache = cache_of()
    answers = await asyncio.gather(*(ask(cache, plan_of(), partial, takes_s=0.05) for _ in range(3)))
    assert sorted(state for state, _ in answers) == ["hit", "hit", "miss"]
    assert cache.answers == 0
    assert (await ask(cache, plan_of(), made()))[0] == "miss"


async def test_when_the_one_that_makes_it_leaves_another_takes_its_place() -> None:
    cache = cache_of()
    leader = asyncio.create_task(ask(cache, plan_of(), made("never"), takes_s=60))
    await asyncio.sleep(0)
    others = [asyncio.create_task(ask(cache, plan_of(), made("after all"), takes_s=0.02)) for _ in range(5)]
    await asyncio.sleep(0.02)
    leader.cancel()
    answers = await asyncio.gather(*others)
    assert sorted(state for state, _ in answers) == ["hit"] * 4 + ["miss"]
    assert {answer.answer.receipt.why for _, answer in answers} == {"after all"}


async def test_a_question_that_nobody_can_answer_is_not_tried_in_a_row() -> None:
    cache = cache_of()
    began = monotonic()
    answers = await asyncio.gather(*(ask(cache, plan_of(), takes_s=0.1) for _ in range(30)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [NotFound] * 30
    assert monotonic() - began < 1, "three rounds, not thirty"
    assert await ask(cache, plan_of(), made()) == ("miss", made())


async def test_whoever_waits_keeps_its_own_deadline() -> None:
    cache = cache_of()
    slow = asyncio.create_task(ask(cache, plan_of(), made(), takes_s=0.5))
    await asyncio.sleep(0.01)
    # As one that came earlier, and was kept waiting elsewhere: the deadline is a part of the question.
    late = replace(plan_of(), ends=monotonic() + 0.1)
    began = monotonic()
    with pytest.raises(DeadlineExceeded):
        await ask(cache, late)
    assert 0.05 < monotonic() - began < 0.4
    assert (await slow)[0] == "miss"
    assert (await ask(cache, replace(plan_of(), ends=monotonic() - 1)))[0] == "hit", "what is there costs no time"


async def test_it_stays_within_its_bounds_and_keeps_what_was_used_last() -> None:
    size = len(made().answer.model_dump_json())
    by_number, by_size = cache_of(answers=3), cache_of(most_bytes=3 * size)
    for cache in (by_number, by_size):
        for number in range(3):
            await ask(cache, plan_of(task_id=f"t{number}"), made())
        assert (await ask(cache, plan_of(task_id="t0")))[0] == "hit"
        await ask(cache, plan_of(task_id="t3"), made())
        assert (cache.answers, cache.bytes) == (3, 3 * size)
        assert (await ask(cache, plan_of(task_id="t0")))[0] == "hit"
        assert (await ask(cache, plan_of(task_id="t1"), made()))[0] == "miss"
    tiny = cache_of(most_bytes=size - 1)
    await ask(tiny, plan_of(), made())
    assert (tiny.answers, tiny.bytes) == (0, 0)


async def test_nothing_is_kept_without_a_time_or_an_epoch() -> None:
    assert (await ask(cache_of(ttl_s=0), plan_of(), made()))[0] == "off"
    unknown = plan_of(replace(ASKER, epoch=None))
    cache = cache_of()
    assert [(await ask(cache, unknown, made()))[0] for _ in range(2)] == ["off", "off"]


async def test_what_is_cleared_is_made_anew() -> None:
    cache = cache_of()
    await ask(cache, plan_of(), made())
    under_way = asyncio.create_task(ask(cache, plan_of(task_id="t2"), made(), takes_s=0.05))
    await asyncio.sleep(0)
    cache.clear()
    await under_way
    assert (cache.answers, cache.bytes) == (0, 0)


def test_every_field_of_a_principal_is_in_the_key_or_said_not_to_be() -> None:
    others: dict[str, Any] = {
        "tenant_id": "t2",
        "agent_id": "a2",
        "role": Role.ADMIN,
        "bound": Scope(organization_id="o"),
        "session_id": "s",
        "model": "gpt-5.2",
        "session_bound": True,
    }
    assert others.keys() | NOT_BY_VALUE == {told.name for told in dataclasses.fields(Principal)}
    query: dict[str, Any] = {"model": "claude-opus-4-8"}
    keys = [key_of(plan_of(replace(ASKER, **{name: value}), **query)) for name, value in others.items()]
    keys += [key_of(plan_of(replace(ASKER, key_id=kind), **query)) for kind in (LOCAL_KEY_ID, OIDC_KEY_ID)]
    keys += [key_of(plan_of(**query)), key_of(plan_of(holds_until=datetime.now(UTC), **query))]
    assert len(set(keys)) == len(keys)
    same = replace(ASKER, key_id="f" * 16, epoch=9, standing=Standing((), {}))
    assert key_of(plan_of(same, **query)) == key_of(plan_of(**query)), "the epoch is compared apart"


def test_a_hit_has_a_trace_and_times_of_its_own() -> None:
    first = made()
    hit, miss = (given(first, state, {"total": 0.5}).receipt for state in (CacheState.HIT, CacheState.MISS))
    assert (miss.cache, miss.trace_id, miss.timings_ms, miss.notes) == ("miss", "0" * 32, {"total": 0.5}, [])
    assert (hit.cache, hit.timings_ms, len(hit.notes)) == ("hit", {"total": 0.5}, 1)
    assert hit.trace_id != miss.trace_id
    assert first.answer.receipt.timings_ms == {}, "what is kept stays as it was"


def test_an_answer_that_is_late_says_so() -> None:
    late = given(made(), CacheState.MISS, {"total": 1.5}).receipt
    assert len(late.notes) == 1
    assert "after its deadline" in late.notes[0]
