"""Retention: what is over its time goes, by the same way as an erasure, and nothing else does (U13)."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from api.wire import listed, read, refused, stored, write
from conftest import Service, edge, unit
from governance.store import Store, store_of
from typer.testing import CliRunner

from app.cli.main import app
from app.client import LastroClient
from app.governance.retention import LEASE_S, RetentionJob
from graph.lease_store import LeaseStore
from graph.model.retention import RetainedKind, Retention, RetentionRule
from graph.model.scope import Role
from graph.model.units import Scope
from graph.order_keys import microseconds

Ageing = Callable[..., None]


@pytest.fixture
def publisher(service: Service, tenant: str) -> Iterator[httpx2.Client]:
    with service.client(service.key(tenant, "press", Role.PUBLISHER), session="session-1") as found:
        yield found


@pytest.fixture
def store(service: Service) -> Iterator[Store]:
    with store_of(service) as found:
        yield found


@pytest.fixture
def age(store: Store, tenant: str) -> Ageing:
    """Makes units of the test's tenant as old as if they had been recorded so many days ago. No door can do that."""

    def to(days: float, *unit_ids: str, of: str = tenant) -> None:
        at_us = microseconds(datetime.now(UTC) - timedelta(days=days))
        for unit_id in unit_ids:
            order = f"{of} {at_us:018d} {unit_id}"
            text = "MATCH (u:ContextUnit {tenant_id: $tenant, id: $id}) SET u.recorded_us = $at, u.tenant_order = $order RETURN u.id AS id"
            assert store.rows(text, tenant=of, id=unit_id, at=at_us, order=order)

    return to


def rule(kind: str, days: int, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "days": days, **more}


def keep(admin: httpx2.Client, *rules: dict[str, Any]) -> None:
    answer = admin.put("/v1/retention", json={"rules": list(rules)})
    assert answer.status_code == 200, answer.text
    assert admin.get("/v1/retention").json() == answer.json()


def run(admin: httpx2.Client, *, dry_run: bool = False) -> dict[str, int]:
    answer = admin.post("/v1/retention/run", json={"dry_run": dry_run})
    assert answer.status_code == 200, answer.text
    assert answer.json()["dry_run"] == dry_run
    assert answer.json()["complete"] is True
    return answer.json()["erased"]


def test_what_is_over_its_time_goes_by_kind(client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client, age: Ageing) -> None:
    both = [unit("old-note", "Old note.", "progress_note"), unit("new-note", "New note.", "progress_note"), unit("old-fact", "Old fact.")]
    stored(client, *both, unit("old-decision", "Old decision.", "decision"))
    stored(stranger, *both)
    age(31, "old-note", "old-fact", "old-decision")
    age(29, "new-note")
    age(31, "old-note", of=stranger.get("/v1/units/old-note").json()["owner"]["tenant_id"])
    assert run(admin) == {}, "without rules everything stays"
    keep(admin, rule("progress_note", 30), rule("decision", 40))
    before = admin.get("/v1/audit").json()["events"]
    assert run(admin, dry_run=True) == {"progress_note": 1}
    assert sorted(listed(client)) == ["new-note", "old-decision", "old-fact", "old-note"], "a dry run changes nothing"
    assert admin.get("/v1/audit").json()["events"] == before
    assert run(admin) == {"progress_note": 1}
    assert sorted(listed(client)) == ["new-note", "old-decision", "old-fact"]
    assert run(admin) == run(admin, dry_run=True) == {}
    assert sorted(listed(stranger)) == ["new-note", "old-fact", "old-note"]
    event = next(event for event in admin.get("/v1/audit").json()["events"] if event["action"] == "retention_applied")
    assert event["numbers"] == {"progress_note": 1}
    refused(write(client, unit("old-note", "Old note.", "progress_note")), 409, "unit_erased", index=0)
    stored(client, unit("again", "Old note.", "progress_note"))


def test_when_it_happened_does_not_make_a_unit_old(
    client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client, age: Ageing
) -> None:
    stored(client, unit("history", timestamp="1999-12-31T23:59:59Z"), unit("future", timestamp="2999-12-31T23:59:59Z"))
    stored(stranger, unit("history", timestamp="1999-12-31T23:59:59Z"))
    keep(admin, rule("observation", 1))
    assert run(admin, dry_run=True) == run(admin) == {}
    assert sorted(listed(client)) == ["future", "history"]
    age(2, "future")
    assert run(admin) == {"observation": 1}
    assert listed(client) == ["history"] == listed(stranger)


def test_authority_and_constraints_stay_unless_it_is_said(
    client: httpx2.Client, admin: httpx2.Client, publisher: httpx2.Client, stranger: httpx2.Client, age: Ageing
) -> None:
    stored(client, unit("fact", "A fact."), unit("limit", "A limit.", "constraint"))
    for trust in ("normative", "approved_artifact"):
        stored(publisher, unit(trust, f"It is {trust}.", trust=trust), unit(f"rule-{trust}", f"A {trust} rule.", "constraint", trust=trust))
    stored(stranger, unit("fact", "A fact."))
    everything = ["fact", "limit", "normative", "approved_artifact", "rule-normative", "rule-approved_artifact"]
    age(100, *everything)
    others = [rule(kind, 9) for kind in ("decision", "tool_result", "correction", "state_snapshot", "progress_note")]
    keep(admin, rule("observation", 9), *others)
    assert run(admin) == {"observation": 1}
    keep(admin, rule("observation", 9), rule("constraint", 9))
    assert run(admin) == {"constraint": 1}
    keep(admin, rule("observation", 9), rule("constraint", 9, authority=True))
    assert run(admin) == {"constraint": 2}
    assert sorted(listed(admin)) == ["approved_artifact", "normative"]
    keep(admin, rule("observation", 9, authority=True))
    assert run(admin) == {"observation": 2}
    assert listed(admin) == []
    assert listed(stranger) == ["fact"]


def test_no_edge_breaks_without_a_mark(
    client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client, age: Ageing, store: Store, tenant: str
) -> None:
    stays = [
        unit("derived", "Derived.", "decision", relations=[edge("old", "provenance")]),
        unit("caused", "Caused.", "decision", relations=[edge("old")]),
        unit("needs", "Needs.", "decision", relations=[edge("old", "dependency")]),
        unit("replaces", "Replaces.", "decision", relations=[edge("old", "supersession")]),
        unit("further", "Further.", "decision", relations=[edge("derived", "provenance")]),
        unit("beside", "Beside.", "decision"),
    ]
    for who in (client, stranger):
        stored(who, unit("old", "Old."), unit("older", "Older.", relations=[edge("old", "provenance")]), *stays)
    age(10, "old", "older")
    keep(admin, rule("observation", 9))
    assert run(admin) == {"observation": 2}
    names = ["derived", "caused", "needs", "replaces", "further", "beside"]
    told = {name: read(client, name) for name in names}
    assert {name: item["metadata"]["source_erased"] for name, item in told.items()} == {name: name != "beside" for name in names}
    assert [item["relations"] for name, item in told.items() if name != "further"] == [[]] * 5
    assert not read(stranger, "derived")["metadata"]["source_erased"]
    assert store.rows("MATCH (e:Erasure {tenant_id: $tenant}) RETURN e.id AS id", tenant=tenant) == []


def test_many_go_in_batches_from_every_place(
    service: Service, tenant: str, admin: httpx2.Client, stranger: httpx2.Client, store: Store, client: httpx2.Client
) -> None:
    """350 units among 700, in two places, more than three batches."""
    with service.client(service.key(tenant), session="s", organization="o", assessment="a") as inside:
        for who, name in ((client, "out"), (inside, "in")):
            stored(who, *[unit(f"{name}-{n}", f"{name} {n}.", "observation" if n % 2 else "decision") for n in range(350)])
    stored(stranger, unit("out-1"))
    at_us = microseconds(datetime.now(UTC) - timedelta(days=50))
    text = "MATCH (u:ContextUnit {tenant_id: $tenant}) SET u.recorded_us = $at, u.tenant_order = $start + u.id RETURN count(u) AS units"
    store.rows(text, tenant=tenant, at=at_us, start=f"{tenant} {at_us:018d} ")
    keep(admin, rule("observation", 49))
    assert run(admin, dry_run=True) == {"observation": 350}
    assert run(admin) == {"observation": 350}
    left = store.rows("MATCH (u:ContextUnit {tenant_id: $tenant}) RETURN u.kind AS kind, count(u) AS units", tenant=tenant)
    assert left == [{"kind": "decision", "units": 350}]
    assert listed(stranger) == ["out-1"]


def test_events_stay_as_long_as_they_are_told(
    admin: httpx2.Client, stranger: httpx2.Client, service: Service, tenant: str, store: Store
) -> None:
    keep(admin, rule("event", 30))
    at = datetime.now(UTC) - timedelta(days=31)
    old = "CREATE (e:Event {tenant_id: $tenant, id: $id, event_order: $order, action: 'key_created', at: datetime($at), numbers: '{}', target: 'x', agent_id: 'a', role: 'admin', key_id: 'k', place: '', outcome: 'done'}) RETURN e.id AS id"
    other = f"stranger-{uuid.uuid4().hex[:8]}"
    for owner in (tenant, other):
        for n in range(3):
            name = f"e{n}-{owner}"
            store.rows(old, tenant=owner, id=name, order=f"{owner} {microseconds(at):018d} {name}", at=at.isoformat())
    assert run(admin, dry_run=True) == {"event": 3}
    assert run(admin) == {"event": 3}
    actions = [event["action"] for event in admin.get("/v1/audit").json()["events"]]
    assert actions[:2] == ["retention_applied", "retention_changed"]
    assert store.rows("MATCH (e:Event {tenant_id: $tenant}) RETURN count(e) AS n", tenant=other) == [{"n": 3}]


def test_rules_are_the_admins_and_each_tenants_own(
    service: Service, tenant: str, client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client
) -> None:
    keep(admin, rule("observation", 30), rule("event", 400))
    event = admin.get("/v1/audit").json()["events"][0]
    assert (event["action"], event["numbers"]) == ("retention_changed", {"observation": 30, "event": 400})
    with (
        service.client(service.key(tenant, role=Role.ADMIN, bound=Scope(organization_id="o"))) as bound,
        service.client(service.key(stranger.get("/v1/units").headers.get("x", f"other-{tenant}"), role=Role.ADMIN)) as elsewhere,
    ):
        for who in (client, bound):
            refused(who.get("/v1/retention"), 403, "forbidden")
            refused(who.put("/v1/retention", json={"rules": []}), 403, "forbidden")
            refused(who.post("/v1/retention/run", json={}), 403, "forbidden")
        assert elsewhere.get("/v1/retention").json() == {"rules": []}
    wrong = [
        [rule("observation", 0)],
        [rule("tale", 9)],
        [rule("event", 9), rule("event", 10)],
        [rule("observation", 36_501)],
        [{"kind": "event"}],
    ]
    for rules in wrong:
        answer = admin.put("/v1/retention", json={"rules": rules})
        assert answer.status_code == 422, answer.text
    assert len(admin.get("/v1/retention").json()["rules"]) == 2


def replica(service: Service, lease: str, interval_s: float = 3_600) -> RetentionJob:
    """A job as a replica on the same database has it, under a lease of the test's own: the service's job stays out of the way."""
    lastro = service.lastro
    own = lastro.retention_job
    store, erasures = own._store, own._erasures  # pyright: ignore[reportPrivateUsage] (the same database and secret)
    return RetentionJob(
        store, LeaseStore(lastro.database), erasures, lastro.erasure, lastro.retention, lastro.registry.local, interval_s, lease
    )


def test_one_replica_at_a_time_applies_it_once_in_its_interval(
    service: Service, client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client, age: Ageing, store: Store
) -> None:
    lease = f"test {uuid.uuid4().hex}"
    first, second = replica(service, lease), replica(service, lease)

    def change(what: str, **values: Any) -> None:
        assert store.rows(f"MATCH (l:Lease {{id: $id}}) SET {what} RETURN l.id AS id", id=lease, **values)

    def both() -> list[bool]:
        async def work() -> list[bool]:
            return list(await asyncio.gather(first.once(), second.once()))

        return sorted(service.run(work()))

    assert service.run(first.once()) is True
    stored(client, unit("old", "Old."), unit("young", "Young."))
    stored(stranger, unit("old", "Old."))
    age(10, "old")
    keep(admin, rule("observation", 9))
    change("l.held_until_ms = 0")
    assert both() == [False, True]
    assert sorted(listed(client)) == ["old", "young"], "the first interval is not over"
    change("l.held_until_ms = 0, l.done_ms = l.done_ms - $ms", ms=3_600_000)
    assert both() == [False, True]
    assert listed(client) == ["young"]
    assert listed(stranger) == ["old"]
    events = [event for event in admin.get("/v1/audit").json()["events"] if event["action"] == "retention_applied"]
    assert [(event["agent_id"], event["numbers"]) for event in events] == [("lastro:retention", {"observation": 1})]
    # Its holder is gone: another waits for the end of the lease, and then for the end of the interval.
    age(10, "young")
    change("l.holder = 'a replica that died'")
    assert both() == [False, False]
    change("l.held_until_ms = l.held_until_ms - $ms", ms=int(LEASE_S * 1000) + 1)
    assert both() == [False, True]
    assert listed(client) == ["young"], "the interval is not over"
    change("l.held_until_ms = 0, l.done_ms = 0")
    assert both() == [False, True]
    assert listed(client) == []


def test_its_death_is_seen(service: Service, client: httpx2.Client, stranger: httpx2.Client) -> None:
    job = replica(service, f"test {uuid.uuid4().hex}", interval_s=0.01)
    assert job.job.state == "off"

    async def die() -> str:
        def broken(*_: object) -> Any:
            raise RuntimeError("a defect")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(job, "_store", broken)
            async with job.job.running():
                assert job.job.state == "running"
                await asyncio.sleep(0.2)
                return job.job.state

    assert service.run(die()) == "stopped"
    for who in (client, stranger):
        assert who.get("/readyz").json()["retention"] == "running"


def test_the_command_line_sets_shows_and_runs(
    service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client, age: Ageing
) -> None:
    stored(client, unit("old", "Old."), unit("gone", "Gone."))
    stored(stranger, unit("old", "Old."))
    age(10, "old")
    environment = {"LASTRO_URL": service.url, "LASTRO_KEY": service.key(tenant, "boss", Role.ADMIN), "COLUMNS": "120"}

    def told(*arguments: str) -> Any:
        done = CliRunner().invoke(app, [*arguments, "--json"], env=environment)
        assert done.exit_code == 0, (done.output, done.exception)
        return json.loads(done.stdout)

    assert told("retention", "set", "observation", "--days", "9") == {"rules": [{"kind": "observation", "days": 9, "authority": False}]}
    assert len(told("retention", "set", "event", "--days", "400", "--reason", "the law")["rules"]) == 2
    assert told("retention", "set", "event", "--forever") == told("retention", "show")
    assert told("retention", "run", "--dry-run") == {"dry_run": True, "erased": {"observation": 1}, "complete": True}
    assert sorted(listed(client)) == ["gone", "old"]
    assert told("retention", "run")["erased"] == {"observation": 1}
    erased = told("erase", "gone", "--reason", "asked for")
    assert (erased["id"], erased["erased"], len(erased["tombstone"])) == ("gone", True, 64)
    assert listed(client) == []
    assert listed(stranger) == ["old"]
    for wrong in (
        ["erase"],
        ["erase", "--tenant", tenant],
        ["erase", "u", "--yes"],
        ["erase", "u", "--tenant", tenant],
        ["erase", "--yes"],
    ):
        assert CliRunner().invoke(app, wrong, env=environment).exit_code != 0


def test_the_client_has_the_same_operations(service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client) -> None:
    stored(client, unit("a/b", "A fact."))
    stored(stranger, unit("a/b", "A fact."))

    async def work() -> tuple[str, Retention, dict[str, int]]:
        async with LastroClient(service.url, service.key(tenant, "boss", Role.ADMIN)) as admin:
            await admin.set_retention(Retention(rules=[RetentionRule(kind=RetainedKind.DECISION, days=9)]), reason="tidiness")
            return await admin.erase("a/b"), await admin.retention(), (await admin.run_retention(dry_run=True)).erased

    tombstone, rules, due = asyncio.run(work())
    assert len(tombstone) == 64
    assert [(item.kind.value, item.days) for item in rules.rules] == [("decision", 9)]
    assert due == {}
    assert listed(client) == []
    assert listed(stranger) == ["a/b"]
