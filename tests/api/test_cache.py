"""The same question of the same caller is answered once while nothing changes, and never another's nor an old one (R4)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from api.wire import CLAUDE, GPT, ask, ids, inquire, refused, send, stored
from conftest import Service, unit
from security.issuer import Issuer, beside, trusting

from graph.model.scope import Role
from graph.model.units import Scope

QUESTION: dict[str, Any] = {"task_id": "t", "budget_tokens": 1_000, "model": GPT}
LONG_S = 300.0


@pytest.fixture(scope="module")
def keeping(service: Service) -> Iterator[Service]:
    """A replica that keeps answers for longer than any test takes."""
    with beside(service, answer_cache_ttl_s=LONG_S) as found:
        yield found


@dataclass
class House:
    """A tenant's callers, by what they send; and a bystander, another tenant with the same names and other words."""

    service: Service
    tenant: str
    _stack: ExitStack = field(repr=False)
    _keys: dict[Any, str] = field(default_factory=dict[Any, str])

    def of(self, agent: str = "agent-1", *, role: Role = Role.AGENT, bound: Scope | None = None, **headers: str) -> httpx2.Client:
        who = (agent, role, bound)
        if who not in self._keys:
            self._keys[who] = self.service.key(self.tenant, agent, role, bound)
        return self._stack.enter_context(self.service.client(self._keys[who], **headers))

    @property
    def admin(self) -> httpx2.Client:
        return self.of("boss", role=Role.ADMIN)


@pytest.fixture
def house(keeping: Service, tenant: str, other_tenant: str) -> Iterator[House]:
    with ExitStack() as stack:
        bystander = House(keeping, other_tenant, stack).of(session="s")
        found = House(keeping, tenant, stack)
        # Every key is made before anything is asked: a key that is made is a change of the tenant.
        for agent, role, bound in CALLERS:
            found.of(agent, role=role, bound=bound)
        for client, word in ((found.of(session="s"), "ours"), (bystander, "theirs")):
            stored(client, unit("a", f"It is {word}.", task_id="t"), unit("b", f"So is this: {word}.", "decision", task_id="t"))
        assert how(ask(bystander, **QUESTION)) == "miss"
        yield found
        again = ask(bystander, **QUESTION)
        assert how(again) == "hit", "what one tenant does changes nothing for another"
        assert "ours" not in str(again)


CALLERS: list[tuple[str, Role, Scope | None]] = [
    ("agent-1", Role.AGENT, None),
    ("agent-2", Role.AGENT, None),
    ("agent-1", Role.ANALYST, None),
    ("agent-1", Role.AGENT, Scope(organization_id="o")),
    ("boss", Role.ADMIN, None),
]


def how(answer: dict[str, Any]) -> str:
    return answer["receipt"]["cache"]


def without_receipt(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "receipt"}


def test_the_second_answer_is_the_first_with_a_receipt_of_its_own(house: House) -> None:
    client = house.of(session="s")
    first, second = ask(client, **QUESTION), ask(client, **QUESTION)
    assert (how(first), how(second)) == ("miss", "hit")
    assert set(ids(first["units"])) == {"a", "b"}
    assert without_receipt(second) == without_receipt(first)
    made, kept = first["receipt"], second["receipt"]
    own = {"trace_id", "timings_ms", "cache", "notes"}
    assert {name: value for name, value in kept.items() if name not in own} == {
        name: value for name, value in made.items() if name not in own
    }
    assert kept["trace_id"] != made["trace_id"]
    assert {"candidates", "load", "render"} <= set(made["timings_ms"])
    assert {"candidates", "load", "render"}.isdisjoint(kept["timings_ms"])
    assert kept["timings_ms"]["total"] > 0
    assert kept["notes"][:-1] == made["notes"]
    assert "answered a moment ago" in kept["notes"][-1]


OTHER_QUESTIONS: list[dict[str, Any]] = [
    {"task_id": "t2"},
    {"step": 4},
    {"budget_tokens": 1_001},
    {"model": CLAUDE},
    {"model": None},
    {"strategy": "recency"},
    {"render": False},
    {"as_of": "2031-01-01T00:00:00Z"},
    {"include_history": True},
    {"kinds": ["decision"]},
    {"question": "Why is it so?"},
    {"deadline_ms": 19_999},
]


def test_another_question_is_another_answer(house: House) -> None:
    client = house.of(session="s")
    ask(client, **QUESTION)
    for change in OTHER_QUESTIONS:
        asked = {name: value for name, value in {**QUESTION, **change}.items() if value is not None}
        assert how(ask(client, **asked)) == "miss", change
        assert how(ask(client, **asked)) == "hit", change
    assert how(ask(client, **QUESTION)) == "hit"
    assert ids(ask(client, **{**QUESTION, "kinds": ["decision"]})["units"]) == ["b"]


def test_another_caller_gets_its_own_answer_though_the_question_is_the_same(house: House) -> None:
    """Whoever differs in the agent, its session, place, role, bounds or a header, right after each other and in any order."""
    bound = Scope(organization_id="o")
    callers: dict[str, tuple[httpx2.Client, set[str]]] = {
        "the agent in its session": (house.of(session="s"), {"a", "b"}),
        "another agent": (house.of("agent-2", session="s"), set()),
        "the agent in another session": (house.of(session="s2"), set()),
        "the agent in no session": (house.of(), {"a", "b"}),
        "the agent in an organisation": (house.of(session="s", organization="o"), {"a", "b"}),
        "the agent in an assessment": (house.of(session="s", organization="o", assessment="x"), {"a", "b"}),
        "the agent with another model in the header": (house.of(session="s", model=CLAUDE), {"a", "b"}),
        "a reviewer of the agent's name": (house.of(role=Role.ANALYST, session="s"), {"a", "b"}),
        "the agent with a key that is bound": (house.of(bound=bound, session="s"), {"a", "b"}),
    }
    for name, (client, seen) in callers.items():
        answer = ask(client, **QUESTION)
        assert how(answer) == "miss", name
        assert set(ids(answer["units"])) == seen, name
    for name, (client, seen) in reversed(callers.items()):
        answer = ask(client, **QUESTION)
        assert how(answer) == "hit", name
        assert set(ids(answer["units"])) == seen, name
        assert "theirs" not in str(answer)


def test_two_keys_of_one_agent_share_and_a_token_does_not(service: Service, tenant: str) -> None:
    issuer = Issuer()
    issuer.start()
    keys = [service.key(tenant) for _ in range(2)]
    with ExitStack() as stack:
        stack.callback(issuer.stop)
        replica = stack.enter_context(beside(service, **trusting(issuer, answer_cache_ttl_s=LONG_S)))
        one, other, token = (
            stack.enter_context(replica.client(proof, session="s")) for proof in (*keys, issuer.token(tenant, sub="agent-1", role="agent"))
        )
        stored(one, unit("a", task_id="t"))
        assert [how(ask(client, **QUESTION)) for client in (one, other, token, token, one)] == ["miss", "hit", "miss", "hit", "hit"]
        stored(token, unit("b", task_id="t"))
        assert [how(ask(client, **QUESTION)) for client in (one, token)] == ["miss", "miss"]


Change = Callable[[House], None]


def _written(house: House) -> None:
    stored(house.of("agent-2", session="elsewhere"), unit("new", task_id="other"))


def _erased(house: House) -> None:
    assert house.admin.delete("/v1/units/a").status_code == 204


def _policy(house: House) -> None:
    assert send(house.admin, "/v1/policies", {"kinds": ["observation"], "to": {"agents": ["nobody"]}}).status_code == 201


def _team(house: House) -> None:
    assert house.admin.put("/v1/teams", json={"id": "x", "agents": ["agent-1"]}).status_code == 200


def _key(house: House) -> None:
    assert send(house.admin, "/v1/keys", {"agent_id": "newcomer"}).status_code == 201


@pytest.mark.parametrize("change", [_written, _erased, _policy, _team, _key], ids=lambda change: change.__name__.strip("_"))
def test_a_change_in_the_tenant_ends_what_is_kept_of_it_here_and_on_another_replica(service: Service, house: House, change: Change) -> None:
    here = house.of(session="s")
    with service.client(here.headers["authorization"].split()[1], session="s") as there:
        assert [how(ask(client, **QUESTION)) for client in (here, there, here)] == ["miss", "miss", "hit"]
        before = set(ids(ask(here, **QUESTION)["units"]))
        change(house)
        now = ask(here, **QUESTION)
        assert how(now) == how(ask(there, **QUESTION)) == "miss"
        assert set(ids(now["units"])) == before - ({"a"} if change is _erased else set())
        assert how(ask(here, **QUESTION)) == "hit"


def test_what_an_agent_writes_is_in_its_next_answer(house: House) -> None:
    client = house.of(session="s")
    for number in range(5):
        stored(client, unit(f"n{number}", task_id="t"))
        assert f"n{number}" in ids(ask(client, **QUESTION)["units"])


def test_a_key_that_is_revoked_gets_nothing_that_is_kept(house: House) -> None:
    key = house.service.key(house.tenant)
    with house.service.client(key, session="s") as client:
        assert how(ask(client, **QUESTION)) == "miss"
        assert how(ask(client, **QUESTION)) == "hit"
        assert house.admin.delete(f"/v1/keys/{key.split('_')[1]}").status_code == 204
        refused(inquire(client, **QUESTION), 401, "unauthenticated")


def test_an_answer_ends_with_the_policy_that_opened_it(house: House) -> None:
    """By its term, with nothing written that could tell; and by being revoked."""
    reader = house.of("agent-2", session="s2")
    ends = datetime.now(UTC) + timedelta(seconds=4)
    for expires_at in (ends.isoformat(), None):
        policy = {"kinds": ["decision"], "to": {"agents": ["agent-2"]}, **({"expires_at": expires_at} if expires_at else {})}
        made = send(house.admin, "/v1/policies", policy).json()["id"]
        assert [how(ask(reader, **QUESTION)) for _ in range(2)] == ["miss", "hit"]
        assert ids(ask(reader, **QUESTION)["units"]) == ["b"]
        if expires_at is None:
            assert house.admin.delete(f"/v1/policies/{made}").status_code == 204
        else:
            assert datetime.now(UTC) < ends, "the machine was too slow for this test"
            time.sleep((ends - datetime.now(UTC)).total_seconds() + 0.05)
        after = ask(reader, **QUESTION)
        assert (how(after), ids(after["units"])) == ("miss", [])
        assert how(ask(reader, **QUESTION)) == "hit"


def test_what_asks_at_the_same_time_is_made_once(house: House) -> None:
    client = house.of(session="s")
    asked: list[str] = []
    database = house.service.lastro.database
    kept = database.read
    all_are_there = threading.Barrier(12)

    async def read(name: str, *args: Any, **more: Any) -> Any:
        asked.append(name)
        return await kept(name, *args, **more)

    def inquiring(_: int) -> dict[str, Any]:
        all_are_there.wait()
        return ask(client, **QUESTION)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(12) as pool:
        patch.setattr(database, "read", read)
        answers = list(pool.map(inquiring, range(12)))
    assert sorted(how(answer) for answer in answers) == ["hit"] * 11 + ["miss"]
    assert len([name for name in asked if name.startswith("context/traverse")]) == 1
    assert len({answer["receipt"]["trace_id"] for answer in answers}) == 12
    assert all(without_receipt(answer) == without_receipt(answers[0]) for answer in answers)


def test_refusals_are_not_kept(house: House) -> None:
    client = house.of(session="s")
    for _ in range(2):
        refused(inquire(client, unit_id="c"), 404, "not_found")
        refused(inquire(client, task_id="t", budget_tokens=1, model=GPT), 422, "budget_too_small")
    stored(client, unit("c"))
    assert ids(ask(client, unit_id="c")["units"]) == ["c"]


def test_a_hit_is_counted_and_charged_like_any_answer(house: House) -> None:
    client, admin = house.of(session="s"), house.admin
    tokens = ask(client, **QUESTION)["consumption"]["tokens"]["value"]
    assert tokens > 0
    limits = {"requests": 5, "tokens": 10 * tokens, "window_s": 86_400}
    assert admin.put("/v1/quotas/agent/agent-1", json=limits).status_code == 200
    assert [how(ask(client, **QUESTION)) for _ in range(5)] == ["miss", "hit", "hit", "hit", "hit"]
    (quota,) = client.get("/v1/usage/me").json()["quotas"]
    assert quota["used"] == {"units": None, "bytes": None, "requests": 5, "tokens": 5 * tokens}
    refused(inquire(client, **QUESTION), 429, "quota_exceeded")
    (usage,) = admin.get("/v1/usage", params={"subject_type": "agent", "subject_id": "agent-1"}).json()["rows"]
    assert (usage["reads"], usage["tokens_read"]) == (6, 6 * tokens)
    (cost,) = admin.get("/v1/ledger", params={"group_by": "agent", "agent_id": "agent-1"}).json()["rows"]
    assert (cost["answers"], cost["cache_hits"], cost["tokens_spent"]) == (6, 4, 6 * tokens)


def test_a_hit_across_places_is_in_the_trail_and_the_trail_ends_no_answer(house: House) -> None:
    stored(house.of(session="s", organization="o", assessment="first"), unit("found", kind="decision", task_id="t"))
    grant = {"kinds": ["decision"], "scope": {"organization_id": "o", "assessment_id": "first"}, "reason": "The second builds on it."}
    assert send(house.admin, "/v1/policies", grant).status_code == 201
    reader = house.of(session="s", organization="o", assessment="second")
    for number, expected in enumerate(["miss", "hit", "hit"], start=1):
        answer = ask(reader, **QUESTION)
        assert how(answer) == expected
        assert "found" in ids(answer["units"])
        events = house.admin.get("/v1/audit", params={"action": "cross_assessment_read"}).json()["events"]
        assert [(event["agent_id"], event["target"], event["numbers"]["units"]) for event in events] == [("agent-1", "o first", 1)] * number


def test_nothing_is_kept_where_the_settings_say_so(service: Service, tenant: str) -> None:
    key = service.key(tenant)
    with beside(service, answer_cache_ttl_s=0) as replica, replica.client(key, session="s") as client:
        stored(client, unit("a", task_id="t"))
        assert [how(ask(client, **QUESTION)) for _ in range(2)] == ["off", "off"]
        assert replica.lastro.cache.answers == 0
