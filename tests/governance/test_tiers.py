"""Tiers: what is used goes up, what ages or is too much goes down, and nothing is lost (S2)."""

from __future__ import annotations

import asyncio
import gc
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from api.wire import ask, ids, inquire, lineage, listed, of_all_sessions, read, refused, stored, write
from conftest import Service, edge, unit
from governance.store import Store, store_of
from integration.beside import service_beside, until

from app.governance.tiering import LEASE, TieringJob, TierRules
from app.governance.uses import Uses
from app.health import Health
from graph.lease_store import LeaseStore
from graph.model.errors import DatabaseBusy
from graph.model.scope import Role
from graph.order_keys import microseconds
from graph.tier_store import TierLimits, Use

DAY_S = 86_400.0
RULES = TierRules(7 * DAY_S, 30 * DAY_S, TierLimits(hot_units=1_000, warm_units=1_000))
SMALL = TierRules(7 * DAY_S, 30 * DAY_S, TierLimits(hot_units=3, warm_units=2))
Ageing = Callable[..., None]
MARK = "heliotrope-narwhal"


@pytest.fixture
def store(service: Service) -> Iterator[Store]:
    with store_of(service) as found:
        yield found


@pytest.fixture(autouse=True)
def nothing_waits(service: Service, store: Store) -> Iterator[None]:
    """The service's own job stays away, and no session of another test waits for a job."""
    hold = "MERGE (l:Lease {id: $job}) SET l.holder = 'a test', l.held_until_ms = $until, l.done_ms = 0 RETURN l.id AS id"
    store.rows(hold, job=LEASE, until=2**60)
    store.rows("MATCH (s:Session) WHERE s.tiers_since_ms > 0 SET s.tiers_since_ms = null RETURN count(s) AS n")
    service.run(service.lastro.uses.flush())
    yield
    store.rows(hold, job=LEASE, until=0)


@pytest.fixture
def age(store: Store, tenant: str) -> Ageing:
    """Makes units as if they had last been written or used so many days ago. No door can do that."""

    def to(days: float, *unit_ids: str, of: str = tenant) -> None:
        at = f"{microseconds(datetime.now(UTC) - timedelta(days=days)):018d}"
        text = "MATCH (u:ContextUnit {tenant_id: $tenant, id: $id}) SET u.tier_age = $place + $at + ' ' + u.tenant_order RETURN u.id AS id"
        for unit_id in unit_ids:
            (row,) = store.rows("MATCH (u:ContextUnit {tenant_id: $tenant, id: $id}) RETURN u.tier_age AS told", tenant=of, id=unit_id)
            assert store.rows(text, tenant=of, id=unit_id, place=row["told"][:2], at=at)

    return to


@pytest.fixture
def agents(service: Service, tenant: str) -> Iterator[tuple[httpx2.Client, httpx2.Client]]:
    """Two agents in a session of the same name; neither sees the other's units."""
    with (
        service.client(service.key(tenant), session="s") as one,
        service.client(service.key(tenant, "agent-2"), session="s") as two,
    ):
        yield one, two


@pytest.fixture
def publisher(service: Service, tenant: str) -> Iterator[httpx2.Client]:
    with service.client(service.key(tenant, "press", Role.PUBLISHER), session="session-1") as found:
        yield found


def replica(service: Service, rules: TierRules = RULES, lease: str | None = None, interval_s: float = 0) -> TieringJob:
    """A job as a replica on the same database has it, under a lease of the test's own."""
    lastro = service.lastro
    leases = LeaseStore(lastro.database)
    return TieringJob(lastro.tier_store, leases, lastro.registry.local, rules, interval_s, lease or f"test {uuid.uuid4().hex}")


def run(service: Service, rules: TierRules = RULES) -> None:
    assert service.run(replica(service, rules).once()) is True


def used(service: Service) -> None:
    """What was given out since is written down, as it is every few seconds."""
    service.run(service.lastro.uses.flush())


@contextmanager
def not_written_down(service: Service) -> Generator[None]:
    """The service's own writing down, every few seconds, waits until the end of the block."""
    writing = service.lastro.uses._writing  # pyright: ignore[reportPrivateUsage]
    service.run(writing.acquire())
    try:
        yield
    finally:
        service.loop.call_soon_threadsafe(writing.release)


def tiers(client: httpx2.Client, *unit_ids: str) -> list[str]:
    return [read(client, unit_id)["metadata"]["tier"] for unit_id in unit_ids]


def words(number: int) -> str:
    """Something that nobody said before."""
    return " ".join(uuid.uuid4().hex[:8] for _ in range(number))


def tenant_of(client: httpx2.Client, unit_id: str) -> str:
    return read(client, unit_id)["owner"]["tenant_id"]


# --- up ---------------------------------------------------------------------------------------------------------------------------------


def test_what_comes_in_an_answer_goes_one_tier_up(
    service: Service, client: httpx2.Client, stranger: httpx2.Client, store: Store, tenant: str
) -> None:
    for who in (client, stranger):
        stored(who, unit("a", tier="cold"), unit("b", tier="warm", session_id="other"), unit("c", tier="cold", session_id="other"))
    with not_written_down(service):
        assert ids(ask(client, session_id="session-1")["units"]) == ["a"]
        assert tiers(client, "a") == ["cold"], "reading writes nothing"
    used(service)
    assert tiers(of_all_sessions(client), "a", "b", "c") == ["warm", "warm", "cold"]
    before = microseconds(datetime.now(UTC))
    for _ in range(3):
        assert read(client, "c")["metadata"]["tier"] == "cold", "only an answer counts as use"
        ask(client, unit_id="a")
    ask(client, unit_id="b")
    used(service)
    assert tiers(client, "a", "b", "c") == ["hot", "hot", "cold"]
    (row,) = store.rows("MATCH (u:ContextUnit {tenant_id: $t, id: 'a'}) RETURN u.uses AS uses, u.last_used_us AS at", t=tenant)
    assert row["uses"] == 4
    assert before <= row["at"] <= microseconds(datetime.now(UTC))
    used(service)
    assert tiers(of_all_sessions(stranger), "a", "b", "c") == ["cold", "warm", "cold"]


def test_a_use_that_is_told_twice_counts_once(service: Service, client: httpx2.Client, stranger: httpx2.Client, store: Store) -> None:
    """A commit whose answer was lost is run again: the unit must not go up two tiers for one use."""
    for who in (client, stranger):
        stored(who, unit("a", tier="cold"))
    scope = service.lastro.registry.local(tenant_of(client, "a"), "agent-1")
    at_us = microseconds(datetime.now(UTC))

    def tell(*uses: Use) -> int:
        service.run(service.lastro.tier_store.write_uses(scope, uses, deadline_s=10))
        text = "MATCH (u:ContextUnit {tenant_id: $t, id: 'a'}) RETURN u.uses AS uses"
        return store.rows(text, t=scope.tenant_id)[0]["uses"]

    assert [tell(Use("a", at_us, 2), Use("nowhere", at_us, 1)) for _ in range(2)] == [2, 2]
    assert tiers(client, "a") == ["warm"]
    assert tell(Use("a", at_us - 1, 1)) == 2
    assert tell(Use("a", at_us + 1, 1)) == 3
    assert tiers(client, "a") == ["hot"]
    assert tiers(stranger, "a") == ["cold"]
    assert listed(client) == ["a"], "what is not there is not made"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_the_database_does_not_take_is_told_again(service: Service, client: httpx2.Client, stranger: httpx2.Client) -> None:
    uses = Uses(service.lastro.tier_store)
    for who in (client, stranger):
        stored(who, unit("a", tier="cold"))
        uses.note(service.lastro.registry.local(tenant_of(who, "a"), "agent-1"), ["a"])
    with pytest.raises(DatabaseBusy):
        service.run(uses.flush(deadline_s=0.0))
    # The driver leaves a socket to the garbage collector when it is told to stop in the middle of connecting; collected here, under the mark.
    time.sleep(0.2)
    gc.collect()
    assert tiers(client, "a") == tiers(stranger, "a") == ["cold"]
    service.run(uses.flush())
    assert tiers(client, "a") == tiers(stranger, "a") == ["warm"]


# --- down -------------------------------------------------------------------------------------------------------------------------------


def test_what_ages_goes_down_unless_it_is_used(service: Service, client: httpx2.Client, stranger: httpx2.Client, age: Ageing) -> None:
    names = ["young", "old", "older", "used"]
    for who in (client, stranger):
        stored(who, *[unit(name, session_id=None if name == "old" else "s") for name in names])
    client, stranger = of_all_sessions(client), of_all_sessions(stranger)
    age(6, "young")
    age(8, "old")
    age(31, "older", "used")
    ask(client, unit_id="used")
    used(service)
    run(service)
    assert tiers(client, *names) == ["hot", "warm", "cold", "hot"]
    assert tiers(stranger, *names) == ["hot"] * 4
    run(service)
    assert tiers(client, *names) == ["hot", "warm", "cold", "hot"], "the age goes by the last use, not by the last move"
    age(31, "old")
    age(31, "young", of=tenant_of(stranger, "young"))
    run(service)
    assert tiers(client, *names) == ["hot", "cold", "cold", "hot"]
    assert tiers(stranger, *names) == ["cold", "hot", "hot", "hot"]


def test_a_unit_of_no_session_ages_too(service: Service, tenant: str, other_tenant: str, age: Ageing) -> None:
    with service.client(service.key(tenant)) as client, service.client(service.key(other_tenant)) as stranger:
        for who in (client, stranger):
            stored(who, unit("a"), unit("b"))
        age(31, "a")
        run(service)
        assert tiers(client, "a", "b") == ["cold", "hot"]
        ask(client, unit_id="a")
        used(service)
        assert tiers(client, "a", "b") == ["warm", "hot"]
        assert tiers(stranger, "a", "b") == ["hot", "hot"]


def test_what_is_too_much_of_a_session_goes_down_the_least_recently_used_first(
    service: Service, client: httpx2.Client, stranger: httpx2.Client
) -> None:
    names = [f"u{n}" for n in range(7)]
    for name in names:
        stored(client, unit(name))
    stored(stranger, *[unit(name) for name in names[:3]])
    ask(client, unit_id="u1")
    used(service)
    stored(client, unit("elsewhere", session_id="other"))
    run(service, SMALL)
    assert tiers(client, *names) == ["cold", "hot", "cold", "warm", "warm", "hot", "hot"]
    assert tiers(stranger, *names[:3]) == ["hot"] * 3
    # Once looked at, a session is left alone until something comes into its tiers.
    run(service, TierRules(7 * DAY_S, 30 * DAY_S, TierLimits(hot_units=1, warm_units=1)))
    assert tiers(client, *names) == ["cold", "hot", "cold", "warm", "warm", "hot", "hot"]
    ask(client, unit_id="u2")
    used(service)
    run(service, SMALL)
    assert tiers(client, *names) == ["cold", "hot", "warm", "cold", "warm", "hot", "hot"]
    stored(client, unit("new"))
    run(service, SMALL)
    assert tiers(client, "new", "u6", "u1", "u5") == ["hot", "hot", "hot", "warm"]


def test_many_go_down_in_several_transactions(service: Service, client: httpx2.Client, stranger: httpx2.Client) -> None:
    """Times that writers give have no say in it: by them the last would be the oldest."""
    for part in range(3):
        at = datetime(2020, 1, 1, tzinfo=UTC) - timedelta(days=part)
        stored(client, *[unit(f"u{part}-{n:03}", timestamp=at.isoformat()) for n in range(300)])
    stored(stranger, *[unit(f"u0-{n:03}") for n in range(120)])
    run(service, TierRules(7 * DAY_S, 30 * DAY_S, TierLimits(hot_units=100, warm_units=150)))
    told = {item["id"]: item["metadata"]["tier"] for item in everything(client)}
    hot, warm = ({name for name, tier in told.items() if tier == wanted} for wanted in ("hot", "warm"))
    assert (len(told), len(hot), len(warm)) == (900, 100, 150)
    assert {name[:2] for name in hot | warm} == {"u2"}
    assert [item["metadata"]["tier"] for item in everything(stranger)].count("hot") == 100


def everything(client: httpx2.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    more: dict[str, str] = {}
    while True:
        page = client.get("/v1/units", params={"limit": "200", **more}).json()
        found += page["units"]
        if page["next"] is None:
            return found
        more = {"cursor": page["next"]}


def test_rules_and_constraints_go_no_further_than_warm(
    service: Service, client: httpx2.Client, publisher: httpx2.Client, stranger: httpx2.Client, age: Ageing
) -> None:
    stored(client, unit("limit", "A limit.", "constraint"), unit("fact"))
    stored(publisher, unit("norm", "A norm.", trust="normative"), unit("approved", "Approved.", trust="approved_artifact"))
    stored(publisher, unit("given", "A rule.", "constraint", trust="normative", tier="cold"))
    stored(stranger, unit("limit", "A limit.", "constraint"))
    age(40, "limit", "fact", "norm", "approved")
    run(service)
    assert tiers(publisher, "limit", "fact", "norm", "approved", "given") == ["warm", "cold", "warm", "warm", "cold"]
    assert tiers(stranger, "limit") == ["hot"]
    stored(publisher, *[unit(f"n{n}", f"Norm {n}.", trust="normative") for n in range(6)])
    stored(publisher, unit("f0"), unit("f1"), unit("f2"))
    run(service, TierRules(7 * DAY_S, 30 * DAY_S, TierLimits(hot_units=1, warm_units=1)))
    assert tiers(publisher, "norm", "approved", *[f"n{n}" for n in range(6)]) == ["warm"] * 8
    assert sorted(tiers(publisher, "f0", "f1", "f2")) == ["cold", "hot", "warm"], "they take nobody's place"
    ask(publisher, unit_id="given")
    used(service)
    age_of_rule = "MATCH (u:ContextUnit {id: 'given'}) WHERE u.tier = 'warm' RETURN u.tier_age AS told"
    with store_of(service) as store:
        assert store.rows(age_of_rule)[-1]["told"] is None


def test_one_agent_does_not_push_another_out_of_sight(
    service: Service, agents: tuple[httpx2.Client, httpx2.Client], stranger: httpx2.Client
) -> None:
    """Two agents may name their sessions alike. What one writes or is given moves nothing of the other's, nor tells it anything."""
    one, two = agents
    stored(two, unit("secret", f"{MARK} one."), unit("secret-2", f"{MARK} two.", tier="cold"))
    stored(one, *[unit(f"u{n}") for n in range(9)])
    stored(stranger, *[unit(f"u{n}", f"{words(3)} {n}.") for n in range(3)])
    run(service, SMALL)
    assert tiers(two, "secret", "secret-2") == ["hot", "cold"]
    assert sorted(tiers(one, *[f"u{n}" for n in range(9)])) == ["cold"] * 4 + ["hot"] * 3 + ["warm"] * 2
    answer = ask(one, session_id="s")
    used(service)
    assert MARK not in str(answer)
    assert "secret" not in str(answer)
    assert tiers(two, "secret", "secret-2") == ["hot", "cold"]
    assert sorted(ids(ask(two, session_id="s")["units"])) == ["secret", "secret-2"]
    assert len(ask(stranger, session_id="session-1")["units"]) == 3


# --- reached all the same ---------------------------------------------------------------------------------------------------------------


def test_what_is_cold_is_found_by_every_door(service: Service, client: httpx2.Client, stranger: httpx2.Client, age: Ageing) -> None:
    batch = [
        unit("root", "The first thing that was seen.", task_id="t", task_step=1),
        unit("middle", "Made from it.", task_id="t", task_step=2, relations=[edge("root", "provenance")]),
        unit("leaf", "Needs it.", "decision", task_id="t", task_step=3, relations=[edge("middle", "dependency"), edge("root")]),
    ]
    for who in (client, stranger):
        stored(who, *batch)
    age(40, "root", "middle")
    run(service)
    assert tiers(client, "root", "middle", "leaf") == ["cold", "cold", "hot"]
    # Before it is found by another door, since from then on it is in use.
    found = ask(client, session_id="session-1")["units"]
    assert {item["id"]: item["metadata"]["tier"] for item in found} == {"root": "cold", "middle": "cold", "leaf": "hot"}
    assert listed(client) == listed(client, session_id="session-1") == listed(client, task_id="t") == listed(stranger)
    assert set(ids(lineage(client, "leaf", direction="before")["units"])) == {"root", "middle", "leaf"}
    queries: list[dict[str, Any]] = [{"unit_id": "leaf"}, {"unit_id": "root"}, {"task_id": "t"}, {"task_id": "t", "step": 3}]
    queries += [{"session_id": "session-1"}, {"session_id": "session-1", "strategy": "recency"}]
    assert "root" in ids(ask(client, topic="the first thing that was seen")["units"])
    for query in queries:
        assert set(ids(ask(client, **query)["units"])) == {"root", "middle", "leaf"}, query
    assert tiers(stranger, "root", "middle") == ["hot", "hot"]


def test_cold_units_leave_the_vector_index_and_come_back(
    service: Service, tenant: str, other_tenant: str, age: Ageing, store: Store
) -> None:
    """Units are in the index while they have the property that it is on. What a cold one has is kept beside, whenever it was made."""

    def placed(of: str = tenant) -> tuple[list[str], list[str]]:
        """Which units are in the index, and which are kept beside it."""
        text = (
            "MATCH (u:ContextUnit {tenant_id: $t}) RETURN u.id AS id, u.embedding_model AS near, u.cold_embedding_model AS far, "
            "size(u.embedding) AS inside, size(u.cold_embedding) AS beside ORDER BY id"
        )
        rows = store.rows(text, t=of)
        assert all((row["near"] is None) == (row["inside"] is None) and (row["far"] is None) == (row["beside"] is None) for row in rows)
        return [row["id"] for row in rows if row["near"]], [row["id"] for row in rows if row["far"]]

    with (
        service_beside(service, embedder="bundled") as meaning,
        meaning.client(meaning.key(tenant), session="s") as client,
        meaning.client(meaning.key(other_tenant), session="s") as stranger,
    ):
        for who in (client, stranger):
            stored(who, unit("seen"), unit("near", relations=[edge("seen", "dependency")]), unit("given", tier="cold"))
        until(lambda: placed() == placed(other_tenant) == (["near", "seen"], ["given"]), 60, "they were not embedded")
        age(40, "seen")
        run(service)
        assert tiers(client, "seen", "near", "given") == ["cold", "hot", "cold"]
        assert placed() == (["near"], ["given", "seen"])
        assert set(ids(lineage(client, "near", direction="before")["units"])) == {"seen", "near"}
        ask(client, unit_id="near")
        ask(client, unit_id="given")
        used(meaning)
        assert tiers(client, "seen", "near", "given") == ["warm", "hot", "warm"]
        assert placed() == (["given", "near", "seen"], [])
        assert placed(other_tenant) == (["near", "seen"], ["given"])


# --- the strategy -----------------------------------------------------------------------------------------------------------------------


def test_a_session_is_answered_by_tier_and_then_by_time(client: httpx2.Client, stranger: httpx2.Client) -> None:
    order = ["hot-3", "hot-1", "warm-5", "warm-2", "cold-6", "cold-4"]
    batch = [
        unit(name, f"It was {name}.", tier=name.split("-")[0], timestamp=f"2026-03-0{name[-1]}T00:00:00Z")
        for name in sorted(order, key=lambda name: name[-1])
    ]
    for who in (client, stranger):
        stored(who, *batch)
    stored(client, unit("beside", session_id="other"))
    for extra in ({}, {"strategy": "tiers"}):
        answer = ask(client, session_id="session-1", **extra)
        found = answer["units"]
        assert sorted(found, key=lambda item: -item["relevance_score"]) == found
        assert ids(found) == order
        assert [item["reason"] for item in found] == ["hot", "hot", "warm", "warm", "cold", "cold"]
        scores = [item["relevance_score"] for item in found]
        assert scores[0] == 1
        assert all(later < earlier for earlier, later in pairwise(scores))
        assert (answer["receipt"]["strategy"], answer["receipt"]["query_type"]) == ("tiers", "session")
    few = ids(ask(client, session_id="session-1", budget_tokens=20)["units"])
    assert few == order[: len(few)]
    assert 1 <= len(few) < len(order)
    before = read(client, "hot-1")["metadata"]["recorded_at"]
    assert ask(client, session_id="session-1", as_of="2026-01-01T00:00:00Z")["units"] == []
    # On a slow machine what was in these answers has gone up meanwhile, so only what is there is compared.
    assert sorted(ids(ask(client, session_id="session-1", as_of=before)["units"])) == sorted(order)
    assert ids(ask(stranger, session_id="session-1")["units"]) == order
    for query in ({"task_id": "t"}, {"unit_id": "hot-1"}):
        refused(inquire(client, **query, strategy="tiers"), 422, "query_not_supported")


def test_the_strategy_is_bounded_and_what_is_hot_comes_before_it(client: httpx2.Client, stranger: httpx2.Client) -> None:
    stored(client, *[unit(f"cold-{n}", words(8), tier="cold") for n in range(150)])
    stored(client, *[unit(f"hot-{n}", words(8)) for n in range(120)])
    stored(stranger, unit("hot-1"))
    answer = ask(client, session_id="session-1", budget_tokens=100_000, render=False)
    names = ids(answer["units"])
    assert answer["receipt"]["candidates"] == 200
    assert {name.split("-")[0] for name in names[:120]} == {"hot"}
    assert len(names) == 200
    assert ids(ask(stranger, session_id="session-1")["units"]) == ["hot-1"]


# --- the same unit ----------------------------------------------------------------------------------------------------------------------


def test_a_unit_that_was_moved_is_still_the_same_unit(
    service: Service, client: httpx2.Client, stranger: httpx2.Client, age: Ageing
) -> None:
    said = unit("a", "Said once.", timestamp="2026-03-04T08:06:07-03:00", labels=["x"])
    for who in (client, stranger):
        stored(who, said)
    age(40, "a")
    run(service)
    assert tiers(client, "a") == ["cold"]
    for again in (said, {**said, "metadata": {**said["metadata"], "tier": "hot"}}, read(client, "a")):
        answer = write(client, again)
        assert answer.status_code == 201, answer.text
        assert (answer.json()["written"], answer.json()["unchanged"]) == (0, 1)
    assert tiers(client, "a") == ["cold"], "writing it again is no use of it"
    assert tiers(stranger, "a") == ["hot"]
    refused(write(client, {**said, "content": "Said otherwise."}), 409, "unit_conflict")


def test_nothing_of_it_is_left_when_it_is_erased(
    service: Service, client: httpx2.Client, stranger: httpx2.Client, store: Store, tenant: str
) -> None:
    for who in (client, stranger):
        stored(who, unit(MARK, tier="warm"), unit("derived", relations=[edge(MARK, "provenance")]))
        ask(who, unit_id=MARK)
    used(service)
    ask(client, unit_id=MARK)
    assert client.delete(f"/v1/units/{MARK}").status_code == 204
    used(service)
    places = "MATCH (n) WHERE n.tenant_id = $t RETURN labels(n) AS names, properties(n) AS told"
    assert MARK not in str(store.rows(places, t=tenant))
    text = "MATCH (u:ContextUnit {tenant_id: $t}) RETURN u.id AS id"
    assert [row["id"] for row in store.rows(text, t=tenant)] == ["derived"]
    assert tiers(stranger, MARK) == ["hot"]


# --- the job ----------------------------------------------------------------------------------------------------------------------------


def test_one_replica_at_a_time_runs_it(service: Service, client: httpx2.Client, stranger: httpx2.Client, age: Ageing, store: Store) -> None:
    lease = f"test {uuid.uuid4().hex}"
    first, second = replica(service, lease=lease), replica(service, lease=lease)
    slow = replica(service, lease=lease, interval_s=3_600)
    for who in (client, stranger):
        stored(who, unit("a"), unit("b"))

    def both() -> list[bool]:
        async def work() -> list[bool]:
            return list(await asyncio.gather(first.once(), second.once()))

        return sorted(service.run(work()))

    age(8, "a")
    assert both() == [False, True]
    assert tiers(client, "a", "b") == ["warm", "hot"]
    change = "MATCH (l:Lease {id: $id}) SET l.holder = 'another', l.held_until_ms = l.held_until_ms + $ms RETURN l.id AS id"
    assert store.rows(change, id=lease, ms=0)
    age(8, "b")
    assert both() == [False, False]
    assert store.rows(change, id=lease, ms=-(2**40))
    assert service.run(slow.once()) is False, "the interval is not over"
    assert store.rows(change, id=lease, ms=-(2**40))
    assert both() == [False, True]
    assert tiers(client, "a", "b") == ["warm", "warm"]
    assert tiers(stranger, "a", "b") == ["hot", "hot"]


def test_its_death_is_seen(service: Service, client: httpx2.Client, stranger: httpx2.Client) -> None:
    lastro = service.lastro

    async def die(part: str) -> tuple[str, str]:
        uses, job = Uses(lastro.tier_store), replica(service, interval_s=0.01)
        health = Health(lastro.engine, lastro.database, lastro.meter, lastro.retention_job, job, uses, lastro.ledger, lastro.embedding)
        async with uses.job.running(), job.job.running():
            well = (await health.readiness()).tiers
            task = vars((job if part == "job" else uses).job)["_task"]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return well, (await health.readiness()).tiers

    assert [service.run(die(part)) for part in ("job", "uses")] == [("running", "stopped")] * 2
    for who in (client, stranger):
        assert who.get("/readyz").json()["tiers"] == "running"
