"""What each subject stores, reads and writes is counted and can be asked for and exported (T4)."""

from __future__ import annotations

import asyncio
import csv
import io
import uuid
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from api.wire import ask, refused, rows_of, stored, write
from conftest import Service, unit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.governance.usage import UsageMeter
from app.health import Health
from graph.model.scope import Role
from graph.model.units import Scope

MARK = "vermilion-pangolin"


def rows(client: httpx2.Client, **asked: str) -> list[dict[str, Any]]:
    return rows_of(client, "/v1/usage", **asked)


def by_subject(found: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    told = {(row["subject_type"], row["subject_id"]): row for row in found}
    assert len(told) == len(found)
    return told


def test_what_is_written_and_read_is_counted_for_everybody_it_counts_for(service: Service, tenant: str, admin: httpx2.Client) -> None:
    assert admin.put("/v1/teams", json={"id": "blue", "agents": ["agent-1"]}).status_code < 300
    with service.client(service.key(tenant), session="s") as one, service.client(service.key(tenant, "agent-2"), session="s") as two:
        stored(one, unit("a", "Eleven: é.", task_id="t"), unit("b", "Ok.", task_id="t"))
        assert write(one, unit("a", "Eleven: é.", task_id="t")).status_code == 201
        refused(write(one, unit("a", "Other.")), 409, "unit_conflict")
        tokens = ask(one, task_id="t")["consumption"]["tokens"]["value"]
        assert one.get("/v1/units/a").status_code == 200
        assert two.get("/v1/units").status_code == 200
    found = by_subject(rows(admin))
    first = {"units": 2, "bytes": 14, "requests": 5, "reads": 2, "writes": 2, "units_written": 2, "tokens_read": tokens, "starts_at": None}
    for subject in (("agent", "agent-1"), ("team", "blue")):
        row = found[subject]
        assert {name: row[name] for name in first} == first
        assert row["tokens_written"] > 0
    second = {"units": 0, "bytes": 0, "requests": 1, "reads": 1, "writes": 0, "units_written": 0, "tokens_read": 0, "tokens_written": 0}
    assert {name: found["agent", "agent-2"][name] for name in second} == second
    for subject in (("session", "s"), ("tenant", tenant)):
        row = found[subject]
        assert {name: row[name] for name in first} == first | {"requests": 6, "reads": 3}
    assert ("agent", "boss") not in found, "who governs reads and writes no units"


def test_usage_is_filtered_by_subject_and_time_and_summed_by_hour_and_day(admin: httpx2.Client, client: httpx2.Client) -> None:
    stored(client, unit("a"), unit("b", session_id="other"))
    assert {row["subject_type"] for row in rows(admin, subject_type="session")} == {"session"}
    assert [row["subject_id"] for row in rows(admin, subject_type="session", subject_id="other")] == ["other"]
    assert rows(admin, subject_type="session", subject_id="oth") == []
    assert [row["subject_id"] for row in rows(admin, subject_type="session", limit="1")] == ["other", "session-1"]
    now = datetime.now(UTC)
    for by, start in (("hour", now.replace(minute=0)), ("day", now.replace(hour=0, minute=0))):
        (row,) = rows(admin, subject_type="agent", by=by)
        assert datetime.fromisoformat(row["starts_at"]) == start.replace(second=0, microsecond=0)
        assert (row["writes"], row["units_written"], row["units"]) == (1, 2, 2)
    earlier, later = (now + timedelta(hours=hours) for hours in (-2, 2))
    for asked, writes in (({"since": earlier, "until": later}, 1), ({"since": later}, 0), ({"until": earlier}, 0)):
        (row,) = rows(admin, subject_type="agent", **{name: at.isoformat() for name, at in asked.items()})
        assert (row["writes"], row["units"]) == (writes, 2), "what is stored is stored now, whatever time is asked for"


def test_usage_as_csv_holds_all_pages(admin: httpx2.Client, client: httpx2.Client) -> None:
    stored(client, *[unit(f"u{n}", session_id=f"s{n:03}") for n in range(205)], unit("f", session_id="=SUM(A1)"))
    answer = admin.get("/v1/usage", params={"format": "csv", "limit": "3"})
    assert answer.headers["content-type"].startswith("text/csv")
    read = list(csv.DictReader(io.StringIO(answer.text)))
    told = rows(admin)
    assert len(read) == len(told) == 205 + 4
    for line, row in zip(read, told, strict=True):
        expected = {name: "" if value is None else str(value) for name, value in row.items()}
        if row["subject_id"].startswith("="):
            expected["subject_id"] = "'=SUM(A1)"
        assert line == expected


WRONG: dict[str, tuple[dict[str, str], str]] = {
    "an id without a type": ({"subject_id": "a"}, "invalid_field"),
    "an unknown type": ({"subject_type": "model"}, "invalid_field"),
    "no id": ({"subject_type": "agent", "subject_id": "a b"}, "invalid_id"),
    "a naive time": ({"since": "2026-03-04T08:06:07"}, "naive_timestamp"),
    "no time": ({"until": "yesterday"}, "invalid_field"),
    "an unknown span": ({"by": "year"}, "invalid_field"),
    "an unknown form": ({"format": "xml"}, "invalid_field"),
    "a cursor of another door": ({"cursor": "MDAwMDAwMDAwMDAwMDAwMDAwIGE="}, "invalid_field"),
    "a page of nothing": ({"limit": "0"}, "invalid_field"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_question_that_makes_no_sense_is_refused(admin: httpx2.Client, case: str) -> None:
    asked, code = WRONG[case]
    refused(admin.get("/v1/usage", params=asked), 422, code)


def test_another_tenants_usage_is_never_seen(service: Service, tenant: str, admin: httpx2.Client) -> None:
    other = f"stranger-{uuid.uuid4().hex[:12]}"
    with service.client(service.key(other), session=MARK) as stranger:
        stored(stranger, unit("a"))
    with service.client(service.key(other, "boss", Role.ADMIN)) as theirs:
        assert MARK in theirs.get("/v1/usage").text
        cursor = theirs.get("/v1/usage", params={"limit": "1"}).json()["next"]
    for asked in ({}, {"format": "csv"}, {"subject_type": "session"}, {"subject_type": "session", "subject_id": MARK}, {"cursor": cursor}):
        answer = admin.get("/v1/usage", params=asked)
        assert answer.status_code == 200
        assert MARK not in answer.text
        assert other not in answer.text
    one = admin.get("/v1/usage", params={"subject_type": "tenant", "subject_id": other})
    none = admin.get("/v1/usage", params={"subject_type": "tenant", "subject_id": "nobody"})
    for answer in (one, none):
        refused(answer, 404, "not_found")
    assert {**one.json(), "trace_id": ""} == {**none.json(), "trace_id": ""}
    with service.client(service.key(tenant, "reviewer", Role.ANALYST)) as analyst:
        assert MARK not in analyst.get("/v1/usage").text


def test_tenants_whose_names_begin_alike_are_counted_apart(service: Service, tenant: str) -> None:
    names = [tenant, f"{tenant}!", f"{tenant}-2", f"{tenant}é"]
    for number, name in enumerate(names):
        with service.client(service.key(name), session="s") as client:
            stored(client, *[unit(f"u{n}") for n in range(number + 1)])
    for number, name in enumerate(names):
        with service.client(service.key(name, "boss", Role.ADMIN)) as admin:
            found = by_subject(rows(admin))
            assert set(found) == {("tenant", name), ("agent", "agent-1"), ("session", "s")}
            assert {row["units"] for row in found.values()} == {row["units_written"] for row in found.values()} == {number + 1}


def test_replicas_add_up_and_what_is_written_down_twice_counts_once(service: Service, tenant: str, admin: httpx2.Client) -> None:
    scope = service.lastro.registry.local(tenant, "agent-1")

    async def count(meter: UsageMeter, times: int) -> None:
        for _ in range(times):
            meter.note(scope, requests=1, tokens_read=10)
            await meter.flush()
        await meter.flush()

    meters = [UsageMeter(service.lastro.quota_store) for _ in range(2)]
    for meter, times in zip(meters, (3, 4), strict=True):
        service.run(count(meter, times))
    service.run(count(meters[0], 2))
    found = by_subject(rows(admin))
    assert {(row["requests"], row["tokens_read"]) for row in found.values()} == {(9, 90)}
    assert set(found) == {("tenant", tenant), ("agent", "agent-1")}


@pytest.mark.parametrize("written_down", [True, False])
def test_what_an_erased_tenant_did_is_not_counted_for_one_that_takes_its_name(
    service: Service, tenant: str, admin: httpx2.Client, stranger: httpx2.Client, written_down: bool
) -> None:
    stored(stranger, unit("a"))
    stored(admin, unit("a"), unit("b"))
    assert {row["units_written"] for row in rows(admin) if row["subject_type"] == "tenant"} == {2}
    stored(admin, unit("c"))
    if written_down:
        service.run(service.lastro.meter.flush())
    assert admin.request("DELETE", "/v1/tenant", json={"tenant": tenant}).status_code == 200
    service.run(service.lastro.meter.flush())
    with service.client(service.key(tenant, "boss", Role.ADMIN)) as anew:
        assert anew.get("/v1/units").json()["units"] == []
        service.run(service.lastro.meter.flush())
        assert {row["units_written"] for row in rows(anew)} == {0}


def test_readyz_tells_when_nobody_writes_usage_down(service: Service) -> None:
    lastro = service.lastro

    async def work() -> tuple[str, str]:
        meter = UsageMeter(lastro.quota_store)
        health = Health(
            lastro.engine, lastro.database, meter, lastro.retention_job, lastro.tiering_job, lastro.uses, lastro.ledger, lastro.embedding
        )
        before = {task for task in asyncio.all_tasks() if task.get_name() == "writing usage down"}
        async with meter.job.running():
            (task,) = {task for task in asyncio.all_tasks() if task.get_name() == "writing usage down"} - before
            well = await health.readiness()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return well.usage, (await health.readiness()).usage

    assert service.run(work()) == ("running", "stopped")
    with service.client() as anybody:
        assert anybody.get("/readyz").json()["usage"] == "running"


def test_reads_without_a_quota_write_nothing(service: Service, tenant: str, client: httpx2.Client) -> None:
    """Without a quota of bandwidth a read costs neither a write nor, within a second, a look at the quotas."""
    stored(client, unit("a", task_id="t"))
    asked: list[str] = []
    database = service.lastro.database
    kept_read, kept_write = database.read, database.write

    async def read(name: str, *args: Any, **more: Any) -> Any:
        asked.append(name)
        return await kept_read(name, *args, **more)

    async def wrote(name: str, *args: Any, **more: Any) -> Any:
        asked.append(name)
        return await kept_write(name, *args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "read", read)
        patch.setattr(database, "write", wrote)
        began = datetime.now(UTC)
        for _ in range(10):
            assert client.get("/v1/units/a").status_code == 200
        took_s = (datetime.now(UTC) - began).total_seconds()
    assert asked.count("quotas/list_quotas") <= 1 + int(took_s)
    assert [name for name in asked if name.startswith("quotas/") and name not in {"quotas/list_quotas", "quotas/record_usage"}] == []
    assert asked.count("units/read_units_by_id") == 10


# --- counters are what is stored ----------------------------------------------------------------------------------------------------

AGENTS = ("agent-1", "agent-2", "agent-3")
SESSIONS = (None, "s1", "s2")
CONTENTS = ("Ok.", "é", "Seen again.", "数据库 is slow")
writes = st.lists(
    st.tuples(
        st.sampled_from(AGENTS),
        st.sampled_from(SESSIONS),
        st.lists(st.tuples(st.integers(0, 11), st.sampled_from(CONTENTS), st.sampled_from(SESSIONS)), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(writes)
def test_counters_equal_what_is_stored_whatever_was_written(service: Service, batches: list[tuple[str, str | None, list[Any]]]) -> None:
    tenant = f"counted-{uuid.uuid4().hex[:12]}"
    keys = {agent: service.key(tenant, agent) for agent in AGENTS}
    for agent, session, items in batches:
        told = {} if session is None else {"session": session}
        with service.client(keys[agent], **told) as client:
            batch = [unit(f"u{n}", content, **({} if of is None else {"session_id": of})) for n, content, of in items]
            assert write(client, *batch).status_code in {201, 409, 422}
    expected: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    with service.client(service.key(tenant, "boss", Role.ADMIN)) as admin:
        for item in admin.get("/v1/units", params={"limit": "200"}).json()["units"]:
            owner = item["owner"]
            subjects = [("tenant", tenant), ("agent", owner["agent_id"])]
            if owner["session_id"] is not None:
                subjects.append(("session", owner["session_id"]))
            for subject in subjects:
                expected[subject][0] += 1
                expected[subject][1] += len(item["content"].encode())
        found = {subject: [row["units"], row["bytes"]] for subject, row in by_subject(rows(admin)).items() if row["units"]}
    assert found == expected


def test_what_is_erased_is_counted_out_for_everybody_it_was_counted_in_for(service: Service, tenant: str, admin: httpx2.Client) -> None:
    """Also for the team that its writer was in, whoever erases it later, and whoever is in the team then."""
    assert admin.put("/v1/teams", json={"id": "blue", "agents": ["agent-1"]}).status_code < 300
    call = unit("a", "Six ab", "decision", tool={"name": "look", "call_id": "c", "arguments": {"at": "é"}})
    with service.client(service.key(tenant), session="s") as client:
        stored(client, call, unit("b", "Ok."))
        assert admin.put("/v1/quotas/team/blue", json={"units": 2}).status_code == 200
        refused(write(client, unit("c")), 429, "quota_exceeded")
        assert admin.put("/v1/teams", json={"id": "blue", "agents": []}).status_code < 300
        before = by_subject(rows(admin))
        assert {(row["units"], row["bytes"]) for row in before.values()} == {(2, 6 + 11 + 3)}
        assert set(before) == {("tenant", tenant), ("agent", "agent-1"), ("session", "s"), ("team", "blue")}
        assert client.delete("/v1/units/a").status_code == 204
        assert {(row["units"], row["bytes"]) for row in by_subject(rows(admin)).values()} == {(1, 3)}
        # What is not there any more can be erased no second time.
        assert client.delete("/v1/units/a").status_code in {204, 404}
        assert {(row["units"], row["bytes"]) for row in by_subject(rows(admin)).values()} == {(1, 3)}
        stored(client, unit("d", "Two"))
    assert by_subject(rows(admin))["team", "blue"]["units"] == 1


@pytest.mark.parametrize("role", list(Role))
def test_admins_and_analysts_see_usage_and_everybody_what_remains_for_them(service: Service, tenant: str, role: Role) -> None:
    with service.client(service.key(tenant, role=role)) as client:
        assert client.get("/v1/usage/me").json() == {"quotas": []}
        answer = client.get("/v1/usage")
        if role in {Role.ADMIN, Role.ANALYST}:
            assert answer.json() == {"rows": [], "next": None}
        else:
            refused(answer, 403, "forbidden")
        if role is not Role.ADMIN:
            refused(client.put("/v1/quotas/agent/agent-1", content=b"{"), 403, "forbidden")
            refused(client.delete("/v1/quotas/agent/agent-1"), 403, "forbidden")


def test_a_bound_key_sees_no_usage(service: Service, tenant: str) -> None:
    with service.client(service.key(tenant, "reviewer", Role.ANALYST, Scope(organization_id="o"))) as client:
        refused(client.get("/v1/usage"), 403, "forbidden")
        refused(client.get("/v1/usage", params={"format": "csv"}), 403, "forbidden")
