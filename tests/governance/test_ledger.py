"""What context answers cost is in a ledger that can be asked, summed and exported, by whom it concerns (A10)."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from api.wire import CLAUDE, GPT, ask, inquire, refused, rows_of, stored
from cli.command_line import lastro
from conftest import Service, unit
from governance.store import store_of
from rich.cells import cell_len
from security.issuer import Issuer, beside, trusting

from app.client import LastroClient
from app.governance.ledger import MODELS_BEYOND, MOST_OF_AGENT, MOST_OF_TENANT, BudgetLedger, LedgerItem
from app.governance.ledger_operations import TenantLedger
from graph.model.errors import Forbidden
from graph.model.ledger import OTHER, OTHER_MODELS, LedgerGroup, LedgerQuery, LedgerRow
from graph.model.scope import AuthorizedScope, Role
from graph.model.units import Scope

MARK = "cerulean-marmot"
NUMBERS = ["answers", "cache_hits", "fallbacks", "tokens_asked", "tokens_spent", "tokens_left_out"]


def rows(client: httpx2.Client, **asked: str) -> list[dict[str, Any]]:
    return rows_of(client, "/v1/ledger", **asked)


def names(found: list[dict[str, Any]], *fields: str) -> list[tuple[str | None, ...]]:
    return [tuple(row[name] for name in fields) for row in found]


def noted(ledger: BudgetLedger, scope: AuthorizedScope, task: str | None = "t", model: str = GPT, **more: Any) -> None:
    ledger.note(scope, LedgerItem(task, model, asked=100, spent=10, left_out=1, **more))


def test_each_answer_is_counted_with_what_was_asked_spent_and_left_out(service: Service, tenant: str, admin: httpx2.Client) -> None:
    words = " ".join(f"word{number}" for number in range(150))
    with service.client(service.key(tenant), session="s") as client:
        stored(client, *(unit(f"u{number}", f"{number} {words}", task_id="t") for number in range(6)))
        answers = [ask(client, task_id="t", budget_tokens=1_500, model=GPT) for _ in range(2)]
        answers.append(ask(client, task_id="t", budget_tokens=1_500, model=CLAUDE))
        free = ask(client, session_id="s", budget_tokens=1_500)
        refused(inquire(client, unit_id="nothing", model=GPT), 404, "not_found")
        left = [item for item in answers[0]["receipt"]["left_out"] if item["reason"] == "budget"]
    assert left
    found = {(row["agent_id"], row["task_id"], row["model"]): row for row in rows(admin)}
    assert set(found) == {("agent-1", "t", GPT), ("agent-1", "t", CLAUDE), ("agent-1", None, None)}
    gpt = found["agent-1", "t", GPT]
    hits = [answer["receipt"]["cache"] for answer in answers[:2]].count("hit")
    spent = answers[0]["consumption"]["tokens"]["value"]
    assert [gpt[name] for name in NUMBERS] == [2, hits, 0, 3_000, 2 * spent, 2 * sum(item["tokens"] for item in left)]
    assert found["agent-1", None, None]["tokens_spent"] == free["consumption"]["tokens"]["value"]
    assert (gpt["session_id"], gpt["starts_at"]) == (None, None)


def test_it_is_summed_by_whatever_is_asked_for(service: Service, tenant: str, admin: httpx2.Client) -> None:
    ledger, registry = service.lastro.ledger, service.lastro.registry
    for agent, session, task, model in [
        ("a1", "s1", "t1", GPT),
        ("a1", "s2", "t2", GPT),
        ("a2", "s1", "t1", CLAUDE),
        ("a2", None, None, ""),
    ]:
        noted(ledger, registry.local(tenant, agent, session_id=session), task, model)
    assert names(rows(admin, group_by="agent"), "agent_id", "answers", "task_id") == [("a1", 2, None), ("a2", 2, None)]
    assert names(rows(admin, group_by="task"), "task_id", "answers") == [(None, 1), ("t1", 2), ("t2", 1)]
    assert names(rows(admin, group_by="model,task"), "task_id", "model") == [(None, None), ("t1", CLAUDE), ("t1", GPT), ("t2", GPT)]
    assert names(rows(admin, group_by="session"), "session_id", "answers") == [(None, 1), ("s1", 2), ("s2", 1)]
    (everything,) = rows(admin, group_by="")
    assert [everything[name] for name in NUMBERS] == [4, 0, 0, 400, 40, 4]
    assert names(rows(admin, group_by="agent", task_id="t1"), "agent_id", "answers") == [("a1", 1), ("a2", 1)]
    assert names(rows(admin, group_by="agent", model=CLAUDE), "agent_id", "answers") == [("a2", 1)]
    assert names(rows(admin, group_by="task", agent_id="a1"), "task_id") == [("t1",), ("t2",)]
    now = datetime.now(UTC)
    for period, start in (("hour", now.replace(minute=0)), ("day", now.replace(hour=0, minute=0))):
        (row,) = rows(admin, group_by=period)
        assert datetime.fromisoformat(row["starts_at"]) == start.replace(second=0, microsecond=0)
        assert row["answers"] == 4
    earlier, later = ((now + timedelta(hours=hours)).isoformat() for hours in (-2, 2))
    for asked, answers in (({"from": earlier, "to": later}, [4]), ({"from": later}, []), ({"to": earlier}, [])):
        assert [row["answers"] for row in rows(admin, group_by="", **asked)] == answers


def test_pages_are_whole_and_exports_hold_all_of_them(service: Service, tenant: str, admin: httpx2.Client) -> None:
    for agent in ("a1", "a2"):
        scope = service.lastro.registry.local(tenant, agent, session_id="s")
        for number in range(120):
            noted(service.lastro.ledger, scope, f"t{number:03}", f"gpt-5.2-{number % 3}")
    noted(service.lastro.ledger, service.lastro.registry.local(tenant, "a1"), "=SUM(A1)", 'gpt-5.2 "new", and more')
    told = rows(admin, group_by="agent,session,task,model,day")
    assert len(told) == 241
    assert told == sorted(told, key=lambda row: (row["agent_id"], row["session_id"] or "", row["task_id"], row["model"]))
    for limit in ("1", "7"):
        first = admin.get("/v1/ledger", params={"group_by": "task,model", "limit": limit}).json()
        assert len(first["rows"]) == int(limit)
    assert rows(admin, group_by="agent,session,task,model,day", limit="50") == told
    asked = {"group_by": "agent,session,task,model,day", "limit": "1"}
    lines = admin.get("/v1/ledger", params={**asked, "format": "ndjson"})
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.text.splitlines()] == told
    exported = admin.get("/v1/ledger", params={**asked, "format": "csv"})
    assert exported.headers["content-type"].startswith("text/csv")
    for line, row in zip(csv.DictReader(io.StringIO(exported.text)), told, strict=True):
        expected = {name: "" if value is None else str(value) for name, value in row.items()}
        assert line == {**expected, "task_id": expected["task_id"].replace("=SUM(A1)", "'=SUM(A1)")}


WRONG: dict[str, tuple[dict[str, str], str]] = {
    "an unknown group": ({"group_by": "agent,team"}, "invalid_field"),
    "many groups": ({"group_by": "agent," * 1_000}, "invalid_field"),
    "two periods": ({"group_by": "hour,day"}, "invalid_field"),
    "no id": ({"task_id": "a b"}, "invalid_id"),
    "no agent": ({"agent_id": ""}, "invalid_id"),
    "no model": ({"model": "\x07"}, "invalid_field"),
    "a naive time": ({"from": "2026-03-04T08:06:07"}, "naive_timestamp"),
    "no time": ({"to": "yesterday"}, "invalid_field"),
    "an unknown form": ({"format": "xml"}, "invalid_field"),
    "a page of nothing": ({"limit": "0"}, "invalid_field"),
    "a cursor of another door": ({"cursor": "MDAwMDAwMDAwMDAwMDAwMDAwIGE="}, "invalid_field"),
    "a cursor that is short": ({"cursor": "WzEsImEiLCJiIl0="}, "invalid_field"),
    "a cursor of other things": ({"cursor": "W251bGwsMSwyLDMsNF0="}, "invalid_field"),
    "a cursor of signs": ({"cursor": "W1tbW1tbW10="}, "invalid_field"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_question_that_makes_no_sense_is_refused(admin: httpx2.Client, case: str) -> None:
    asked, code = WRONG[case]
    refused(admin.get("/v1/ledger", params=asked), 422, code)


# --- who sees what ---------------------------------------------------------------------------------------------------------------


def test_another_tenants_ledger_is_never_seen(service: Service, tenant: str, other_tenant: str, admin: httpx2.Client) -> None:
    for name in (other_tenant, f"{tenant}!", f"{tenant}-2"):
        noted(service.lastro.ledger, service.lastro.registry.local(name, "agent-1", session_id=MARK), MARK)
        service.key(name)
    with service.client(service.key(other_tenant, "boss", Role.ADMIN)) as theirs:
        assert [row["task_id"] for row in rows(theirs)] == [MARK]
        cursor = theirs.get("/v1/ledger", params={"limit": "1"}).json()["next"]
    for asked in ({}, {"format": "csv"}, {"format": "ndjson"}, {"task_id": MARK}, {"cursor": cursor}, {"group_by": "session,hour"}):
        answer = admin.get("/v1/ledger", params=asked)
        assert answer.status_code == 200
        assert MARK not in answer.text
        assert "format" in asked or answer.json() == {"rows": [], "next": None}


@pytest.mark.parametrize("role", [Role.AGENT, Role.PUBLISHER, Role.ANALYST])
def test_whoever_is_no_admin_sees_what_its_own_agent_spent(service: Service, tenant: str, role: Role) -> None:
    ledger, registry = service.lastro.ledger, service.lastro.registry
    for agent, session in (("me", "s1"), ("me", "s2"), ("me", None), ("somebody", "s1")):
        noted(ledger, registry.local(tenant, agent, session_id=session), f"{MARK}-{agent}-{session}")
    key = service.key(tenant, "me", role)
    with service.client(key) as anywhere, service.client(key, session="s1") as inside:
        assert [row["task_id"] for row in rows(anywhere)] == [f"{MARK}-me-None", f"{MARK}-me-s1", f"{MARK}-me-s2"]
        assert [row["task_id"] for row in rows(inside)] == [f"{MARK}-me-None", f"{MARK}-me-s1"]
        assert rows(inside, group_by="")[0]["answers"] == 2
        for asked in ({"agent_id": "somebody"}, {"task_id": f"{MARK}-somebody-s1"}, {"agent_id": "somebody", "task_id": f"{MARK}-me-s1"}):
            assert rows(anywhere, **asked) == []
        for form in ("csv", "ndjson"):
            assert "somebody" not in anywhere.get("/v1/ledger", params={"format": form}).text
        assert [row["agent_id"] for row in rows(anywhere, agent_id="me", group_by="agent")] == ["me"]


@pytest.mark.parametrize("role", [Role.ADMIN, Role.AGENT])
def test_a_bound_key_sees_nothing_of_it(service: Service, tenant: str, role: Role) -> None:
    noted(service.lastro.ledger, service.lastro.registry.local(tenant, "me"), MARK)
    for place in (Scope(organization_id="o"), Scope(organization_id="o", assessment_id="x")):
        with service.client(service.key(tenant, "me", role, place)) as client:
            for form in ("json", "csv", "ndjson"):
                refused(client.get("/v1/ledger", params={"format": form}), 403, "forbidden")


def test_a_token_that_is_kept_to_a_session_sees_that_one_also_as_an_admin(service: Service, tenant: str) -> None:
    ledger, registry = service.lastro.ledger, service.lastro.registry
    service.key(tenant)
    for agent, session in (("me", "s1"), ("me", "s2"), ("somebody", "s1")):
        noted(ledger, registry.local(tenant, agent, session_id=session), f"{agent}-{session}")
    service.run(ledger.flush(tenant))
    issuer = Issuer()
    issuer.start()
    try:
        with beside(service, **trusting(issuer)) as replica:
            for role in ("admin", "agent"):
                with replica.client(issuer.token(tenant, sub="me", role=role, session_id="s1")) as client:
                    assert [row["task_id"] for row in rows(client)] == ["me-s1"]
    finally:
        issuer.stop()


# --- counting ---------------------------------------------------------------------------------------------------------------------


def test_replicas_add_up_and_what_is_written_down_twice_counts_once(service: Service, tenant: str, admin: httpx2.Client) -> None:
    scope = service.lastro.registry.local(tenant, "a")

    async def count(ledger: BudgetLedger, times: int) -> None:
        for number in range(times):
            noted(ledger, scope, cache_hit=number > 0, fallback=number == 0)
            await ledger.flush()
        await ledger.flush()

    ledgers = [BudgetLedger(service.lastro.ledger_store, 400) for _ in range(2)]
    for ledger, times in zip(ledgers, (3, 4), strict=True):
        service.run(count(ledger, times))
    service.run(count(ledgers[0], 2))
    (row,) = rows(admin)
    assert [row[name] for name in NUMBERS] == [9, 6, 3, 900, 90, 9]


def test_one_agent_that_makes_names_up_takes_no_room_from_the_others(service: Service, tenant: str, admin: httpx2.Client) -> None:
    ledger, registry = BudgetLedger(service.lastro.ledger_store, 400), service.lastro.registry
    loud, quiet = registry.local(tenant, "loud", session_id="s"), registry.local(tenant, "quiet", session_id="s")
    for number in range(MOST_OF_AGENT + 100):
        noted(ledger, loud, f"t{number}", f"gpt-5.2-{number}")
    noted(ledger, loud, "t0", "gpt-5.2-0")
    noted(ledger, quiet, "mine")
    service.run(ledger.flush())
    found = rows(admin, limit="200")
    assert sum(row["answers"] for row in found if row["agent_id"] == "loud") == MOST_OF_AGENT + 101
    apart = [row for row in found if row["agent_id"] == "loud" and row["task_id"] != OTHER]
    assert (len(apart), sum(row["answers"] for row in apart)) == (MOST_OF_AGENT, MOST_OF_AGENT + 1)
    others = {row["model"]: row["answers"] for row in found if row["task_id"] == OTHER}
    assert (len(others), others[OTHER_MODELS]) == (MODELS_BEYOND + 1, 100 - MODELS_BEYOND)
    assert names([row for row in found if row["agent_id"] == "quiet"], "task_id", "answers") == [("mine", 1)]
    with service.client(service.key(tenant, "loud"), session="s2") as elsewhere:
        assert {row["task_id"] for row in rows(elsewhere)} == {OTHER}, "no task of another session is named"


def test_a_tenant_has_so_many_entries_an_hour_and_then_one_for_each_agent(service: Service, tenant: str) -> None:
    ledger = BudgetLedger(service.lastro.ledger_store, 400)
    agents = [service.lastro.registry.local(tenant, f"a{number}") for number in range(3 * MOST_OF_TENANT // MOST_OF_AGENT)]
    for scope in agents:
        for number in range(MOST_OF_AGENT + MODELS_BEYOND + 5):
            noted(ledger, scope, f"t{number}", f"gpt-5.2-{number}")
    (hour,) = vars(ledger)["_totals"].hours
    assert len(hour.totals) <= 2 * MOST_OF_TENANT + len(agents)
    assert sum(spent.answers for spent in hour.totals.values()) == len(agents) * (MOST_OF_AGENT + MODELS_BEYOND + 5)


def test_entries_over_their_time_are_deleted_of_every_tenant(service: Service, tenant: str, other_tenant: str) -> None:
    now = datetime.now(UTC)
    for name in (tenant, other_tenant):
        service.key(name)
        noted(service.lastro.ledger, service.lastro.registry.local(name, "a"))
        service.run(service.lastro.ledger.flush(name))
    with store_of(service) as store:

        def kept(name: str) -> list[int]:
            return [
                row["days"]
                for row in store.rows(
                    "MATCH (l:LedgerEntry {tenant_id: $tenant}) RETURN ($hour - l.hour) / 24 AS days ORDER BY days",
                    tenant=name,
                    hour=hour_at(now),
                )
            ]

        for name in (tenant, other_tenant):
            for days in (10, 399, 401, 1_000):
                store.rows(
                    "CREATE (l:LedgerEntry {tenant_id: $tenant, key: $key, hour: $hour}) RETURN l",
                    tenant=name, key=f"{name} {days} {uuid.uuid4().hex}", hour=hour_at(now) - 24 * days,
                )  # fmt: skip
        assert kept(tenant) == kept(other_tenant) == [0, 10, 399, 401, 1_000]
        deleted = service.run(BudgetLedger(service.lastro.ledger_store, 400).delete_old(now))
        assert deleted >= 4
        assert kept(tenant) == kept(other_tenant) == [0, 10, 399]
        assert service.run(BudgetLedger(service.lastro.ledger_store, 400).delete_old(now)) == 0


def hour_at(now: datetime) -> int:
    return int(now.timestamp()) // 3_600


def test_a_tenant_that_is_erased_has_no_entries_nor_gets_them_back(service: Service, tenant: str, other_tenant: str) -> None:
    with service.client(service.key(tenant, "boss", Role.ADMIN), session="s") as admin:
        stored(admin, unit("a", task_id=MARK))
        ask(admin, task_id=MARK)
        assert [row["task_id"] for row in rows(admin)] == [MARK]
        ask(admin, task_id=MARK)
        body = json.dumps({"tenant": tenant, "reason": "A trial is over."})
        answer = admin.request("DELETE", "/v1/tenant", content=body, headers={"Content-Type": "application/json"})
        certificate = json.loads(answer.text.splitlines()[-1])["certificate"]
    assert certificate["nodes"]["LedgerEntry"] == 1
    assert certificate["scan"]["found"] == 0
    service.run(service.lastro.ledger.flush())
    with store_of(service) as store:
        assert store.of_tenant(tenant) == []
    with service.client(service.key(tenant, "boss", Role.ADMIN)) as anew:
        service.run(service.lastro.ledger.flush())
        assert rows(anew) == [], "what was noted of the one before is not the new one's"


def test_readyz_tells_when_nobody_writes_it_down(service: Service) -> None:
    async def work() -> tuple[str, str, str]:
        ledger = BudgetLedger(service.lastro.ledger_store, 400)
        before = {task for task in asyncio.all_tasks() if task.get_name() == "writing the ledger down"}
        off = ledger.job.state
        async with ledger.job.running():
            (task,) = {task for task in asyncio.all_tasks() if task.get_name() == "writing the ledger down"} - before
            well = ledger.job.state
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return off, well, ledger.job.state

    assert service.run(work()) == ("off", "running", "stopped")
    with service.client() as anybody:
        assert anybody.get("/readyz").json()["ledger"] == "running"


# --- the command and the client ---------------------------------------------------------------------------------------------------


def test_the_command_shows_it_as_a_table_json_csv_and_lines(service: Service, tenant: str, other_tenant: str, admin: httpx2.Client) -> None:
    ledger, registry = service.lastro.ledger, service.lastro.registry
    noted(ledger, registry.local(other_tenant, "a1"), MARK)
    for task in ("a-task-with-a-name-that-is-much-too-long-for-a-table-of-eighty-columns", "t"):
        noted(ledger, registry.local(tenant, "a1"), task)
    told = rows(admin)
    remote = {"LASTRO_URL": service.url, "LASTRO_KEY": service.key(tenant, "boss", Role.ADMIN)}
    for asked in ([], ["--by", "agent", "--by", "session", "--by", "task", "--by", "model", "--by", "day", "--from", "1d"]):
        shown = lastro("ledger", *asked, **remote)
        assert shown.returncode == 0, shown.stderr
        assert [line for line in shown.stdout.splitlines() if cell_len(line) > 80] == []
        assert "a1" in shown.stdout
    assert json.loads(lastro("ledger", "--json", **remote).stdout)["rows"] == told
    assert json.loads(lastro("ledger", "--json", "--limit", "1", **remote).stdout)["next"]
    assert [json.loads(line) for line in lastro("ledger", "--ndjson", **remote).stdout.splitlines()] == told
    assert [row["task_id"] for row in csv.DictReader(io.StringIO(lastro("ledger", "--csv", "--task", "t", **remote).stdout))] == ["t"]
    assert MARK not in lastro("ledger", "--csv", **remote).stdout
    wrong = lastro("ledger", "--csv", "--json", **remote)
    assert (wrong.returncode, json.loads(wrong.stdout)["error"]["code"]) == (2, "command_refused")


def test_the_command_works_on_the_store_itself(tmp_path: Path) -> None:
    place = {"LASTRO_DATA": str(tmp_path / "data")}
    path = tmp_path / "units.ndjson"
    path.write_text(json.dumps(unit("a", task_id="t")) + "\n")
    for command in (
        ["keys", "create", "--tenant", "acme", "--agent", "reader", "--json"],
        ["import", str(path), "--tenant", "acme", "--json"],
    ):
        assert lastro(*command, **place).returncode == 0
    answer = lastro("context", "--task", "t", "--tenant", "acme", "--json", **place)
    assert json.loads(answer.stdout)["receipt"]["cache"] == "off"
    (row,) = json.loads(lastro("ledger", "--tenant", "acme", "--json", **place).stdout)["rows"]
    assert (row["agent_id"], row["task_id"], row["answers"]) == ("cli", "t", 1)


def test_the_client_reads_it_by_pages(service: Service, tenant: str, admin: httpx2.Client) -> None:
    for number in range(3):
        noted(service.lastro.ledger, service.lastro.registry.local(tenant, "a1"), f"t{number}")
    told = [LedgerRow.model_validate_json(json.dumps(row)) for row in rows(admin, group_by="task,day")]
    query = LedgerQuery(since=datetime.now(UTC) - timedelta(days=1), group_by=(LedgerGroup.TASK, LedgerGroup.DAY))

    async def work() -> None:
        async with LastroClient(service.url, service.key(tenant, "boss", Role.ADMIN)) as client:
            first = await client.ledger(query, limit=2)
            rest = await client.ledger(query, cursor=first.next)
            assert [*first.rows, *rest.rows] == told
            assert (await client.ledger(LedgerQuery(agent_id="nobody"))).rows == []
        async with LastroClient(service.url, service.key(tenant, bound=Scope(organization_id="o"))) as bound:
            with pytest.raises(Forbidden):
                await bound.ledger(query)

    asyncio.run(work())


def test_it_is_read_within_a_scope(service: Service, tenant: str) -> None:
    """The door that commands use, as an agent of the store itself."""
    scope = service.lastro.registry.local(tenant, "me", role=Role.AGENT)
    service.key(tenant)
    noted(service.lastro.ledger, service.lastro.registry.local(tenant, "somebody"))
    door = TenantLedger(service.lastro.ledger_store, service.lastro.ledger, scope)
    assert service.run(door.ledger(LedgerQuery())).rows == []
