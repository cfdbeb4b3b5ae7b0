"""Quotas hold exactly, also for sixteen writers at once; what is refused is refused whole and says what remains, and when (T3)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier
from typing import Any

import httpx2
import pytest
from api.wire import ask, inquire, listed, refused, send, stored, write
from conftest import Service, unit

from app.governance.quotas import Quotas
from app.governance.usage import UsageMeter
from app.registry.permissions import Action
from graph.model.errors import QuotaExceeded
from graph.model.scope import Role
from graph.model.units import Scope

AT_ONCE = 16
LONG_S = 31 * 86_400
"""A window that does not end while the tests run."""
TYPES = ["tenant", "agent", "session", "team"]


def limit(admin: httpx2.Client, subject_type: str, subject_id: str, **limits: int) -> dict[str, Any]:
    answer = admin.put(f"/v1/quotas/{subject_type}/{subject_id}", json=limits)
    assert answer.status_code == 200, answer.text
    return answer.json()


def quota(admin: httpx2.Client, subject_type: str, subject_id: str) -> dict[str, Any]:
    found = {(item["subject_type"], item["subject_id"]): item for item in admin.get("/v1/quotas").json()["quotas"]}
    return found[subject_type, subject_id]


def held(admin: httpx2.Client, subject_type: str, subject_id: str) -> tuple[int, int]:
    """Units and bytes that a subject holds, by its counters."""
    answer = admin.get("/v1/usage", params={"subject_type": subject_type, "subject_id": subject_id})
    assert answer.status_code == 200, answer.text
    rows = answer.json()["rows"]
    return (rows[0]["units"], rows[0]["bytes"]) if rows else (0, 0)


def at_once(clients: list[httpx2.Client], work: Callable[[int, httpx2.Client], httpx2.Response]) -> list[httpx2.Response]:
    """Something done by all at the same moment; again for whom the database had no time."""
    barrier = Barrier(len(clients))

    def one(number: int) -> httpx2.Response:
        barrier.wait(30)
        answer = work(number, clients[number])
        while answer.status_code == 503:
            time.sleep(0.1)
            answer = work(number, clients[number])
        return answer

    with ThreadPoolExecutor(len(clients)) as pool:
        return list(pool.map(one, range(len(clients))))


def windows_edge(window_s: int) -> None:
    """Wait for the beginning of a window, so that what follows lies in one."""
    while time.time() % window_s > 0.3:
        time.sleep(0.05)


# --- storage ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subject_type", TYPES)
def test_sixteen_writers_end_exactly_at_the_limit(service: Service, tenant: str, admin: httpx2.Client, subject_type: str) -> None:
    """Half of them as another agent and in another session, where the limit is on what they share."""
    shared = {"tenant": tenant, "agent": "agent-1", "session": "session-1", "team": "blue"}[subject_type]
    agents = ["agent-1"] * AT_ONCE if subject_type == "agent" else ["agent-1", "agent-2"] * (AT_ONCE // 2)
    sessions = ["session-1"] * AT_ONCE if subject_type == "session" else ["session-1", "session-2"] * (AT_ONCE // 2)
    if subject_type == "team":
        assert admin.put("/v1/teams", json={"id": "blue", "agents": ["agent-1", "agent-2"]}).status_code < 300
    keys = {agent: service.key(tenant, agent) for agent in set(agents)}
    limit(admin, subject_type, shared, units=20)
    with ExitStack() as stack:
        clients = [stack.enter_context(service.client(keys[agents[n]], session=sessions[n])) for n in range(AT_ONCE)]
        answers = [
            answer
            for part in range(2)
            for answer in at_once(clients, lambda n, client, part=part: write(client, unit(f"u-{part}-{n}", "Twelve bytes")))
        ]
    assert Counter(answer.status_code for answer in answers) == {201: 20, 429: 2 * AT_ONCE - 20}
    assert len(listed(admin, limit=200)) == 20
    assert held(admin, subject_type, shared) == (20, 240)
    assert quota(admin, subject_type, shared)["remaining"]["units"] == 0
    for answer in answers:
        if answer.status_code == 429:
            told = refused(answer, 429, "quota_exceeded")["quota"]
            assert (told["subject_type"], told["subject_id"], told["limit"]) == (subject_type, shared, "units")
            assert (told["allowed"], told["remaining"]) == (20, 20 - told["used"])


def test_bytes_are_those_of_content_and_tool_arguments_in_utf_8(admin: httpx2.Client, client: httpx2.Client) -> None:
    limit(admin, "agent", "agent-1", bytes=30)
    stored(client, unit("a", "décisão"))  # seven letters, two of them of two bytes
    assert held(admin, "agent", "agent-1") == (1, 9)
    call = unit("b", "Looked.", "decision", tool={"name": "look", "call_id": "c", "arguments": {"at": "é"}})
    stored(client, call)  # 7 and {"at":"é"} with 11
    assert held(admin, "agent", "agent-1") == (2, 27)
    told = refused(write(client, unit("c", "four")), 429, "quota_exceeded")["quota"]
    assert (told["limit"], told["allowed"], told["used"], told["remaining"], told["asked"]) == ("bytes", 30, 27, 3, 4)
    stored(client, unit("c", "abc"))
    assert quota(admin, "agent", "agent-1")["remaining"] == {"units": None, "bytes": 0, "requests": None, "tokens": None}


def test_a_batch_over_the_limit_is_refused_whole(admin: httpx2.Client, client: httpx2.Client) -> None:
    limit(admin, "session", "session-1", units=5)
    stored(client, unit("first"))
    told = refused(write(client, *[unit(f"u{n}") for n in range(5)]), 429, "quota_exceeded")
    assert told["quota"] == {
        "subject_type": "session",
        "subject_id": "session-1",
        "limit": "units",
        "allowed": 5,
        "used": 1,
        "remaining": 4,
        "asked": 5,
    }
    assert "4 remaining" in told["title"]
    assert listed(admin) == ["first"]
    assert held(admin, "session", "session-1") == held(admin, "agent", "agent-1") == (1, len("Something was seen."))
    # Where the batch names several sessions, one that is full refuses all of it.
    mixed = [unit("elsewhere", session_id="session-2"), *[unit(f"u{n}") for n in range(5)]]
    refused(write(client, *mixed), 429, "quota_exceeded")
    assert listed(admin) == ["first"]
    assert held(admin, "session", "session-2") == (0, 0)
    stored(client, *mixed[:5])
    assert held(admin, "session", "session-1")[0] == 5


def test_storage_over_the_limit_gives_no_time_to_come_back(admin: httpx2.Client, client: httpx2.Client) -> None:
    limit(admin, "agent", "agent-1", units=0)
    answer = write(client, unit("a"))
    refused(answer, 429, "quota_exceeded")
    assert "retry-after" not in answer.headers


def test_what_is_there_already_costs_nothing(admin: httpx2.Client, client: httpx2.Client) -> None:
    stored(client, unit("a"), unit("b"))
    limit(admin, "agent", "agent-1", units=2)
    assert write(client, unit("a"), unit("b")).json() == {"written": 0, "unchanged": 2, "ids": ["a", "b"]}
    refused(write(client, unit("a"), unit("c")), 429, "quota_exceeded")
    assert held(admin, "agent", "agent-1")[0] == 2


def test_a_large_batch_costs_only_what_is_new_of_it(admin: httpx2.Client, client: httpx2.Client) -> None:
    """Large batches are tried as if all of them were new; those that are not must neither count nor refuse the batch."""
    batch = [unit(f"u{n:03}") for n in range(90)]
    new = {0, 45, 89}
    stored(client, *[item for n, item in enumerate(batch) if n not in new])
    limit(admin, "agent", "agent-1", units=89)
    refused(write(client, *batch), 429, "quota_exceeded")
    assert held(admin, "agent", "agent-1")[0] == 87
    limit(admin, "agent", "agent-1", units=90)
    assert write(client, *batch).json()["written"] == 3
    assert held(admin, "agent", "agent-1") == held(admin, "session", "session-1") == (90, 90 * len("Something was seen."))


def test_counters_are_right_after_every_kind_of_refusal(admin: httpx2.Client, client: httpx2.Client) -> None:
    stored(client, unit("a", "One."))
    before = held(admin, "agent", "agent-1")
    assert before == (1, 4)
    refusals = [
        write(client, unit("b"), unit("a", "Other.")),
        write(client, unit("b"), unit("c", relations=[{"target_id": "nowhere", "edge_type": "causation"}])),
        write(client, unit("b"), unit("c", "<b>markup</b>")),
        write(client, unit("b"), unit("b")),
        write(client, *[unit(f"u{n:03}") for n in range(99)], unit("a", "Other.")),
    ]
    assert [answer.status_code for answer in refusals] == [409, 422, 422, 422, 409]
    assert held(admin, "agent", "agent-1") == held(admin, "session", "session-1") == before
    assert listed(admin) == ["a"]


def test_units_count_for_the_agent_and_session_that_they_name(admin: httpx2.Client) -> None:
    limit(admin, "agent", "other", units=1)
    stored(admin, unit("a", agent_id="other", session_id="s"), unit("b", session_id="t"))
    told = refused(write(admin, unit("c"), unit("d", agent_id="other")), 429, "quota_exceeded")["quota"]
    assert (told["subject_type"], told["subject_id"]) == ("agent", "other")
    assert [held(admin, *subject)[0] for subject in (("agent", "other"), ("agent", "boss"), ("session", "s"), ("session", "t"))] == [
        1,
        1,
        1,
        1,
    ]


def test_a_quota_is_of_one_tenant(service: Service, admin: httpx2.Client, client: httpx2.Client, stranger: httpx2.Client) -> None:
    limit(admin, "agent", "agent-1", units=0, requests=0, window_s=LONG_S)
    limit(admin, "session", "session-1", units=0)
    refused(client.get("/v1/units"), 429, "quota_exceeded")
    stored(stranger, unit("a"))
    assert listed(stranger) == ["a"]
    with service.client(service.key("another-tenant-of-quotas", "boss", Role.ADMIN)) as other:
        assert other.get("/v1/quotas").json() == {"quotas": []}
        answer = other.delete("/v1/quotas/agent/agent-1")
        refused(answer, 404, "not_found")
    refused(client.get("/v1/units"), 429, "quota_exceeded")


def test_a_limit_that_is_raised_or_removed_lets_in_again(admin: httpx2.Client, client: httpx2.Client) -> None:
    limit(admin, "agent", "agent-1", units=1)
    stored(client, unit("a"))
    refused(write(client, unit("b")), 429, "quota_exceeded")
    limit(admin, "agent", "agent-1", units=2)
    stored(client, unit("b"))
    refused(write(client, unit("c")), 429, "quota_exceeded")
    assert admin.delete("/v1/quotas/agent/agent-1").status_code == 204
    stored(client, unit("c"))
    refused(admin.delete("/v1/quotas/agent/agent-1"), 404, "not_found")
    # Set below what is stored: nothing is lost, nothing comes in.
    assert limit(admin, "agent", "agent-1", units=1)["used"]["units"] == 3
    refused(write(client, unit("d")), 429, "quota_exceeded")
    assert write(client, unit("c")).status_code == 201


# --- bandwidth --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subject_type", TYPES)
def test_of_sixteen_requests_at_once_as_many_are_let_in_as_the_limit_says(
    service: Service, tenant: str, admin: httpx2.Client, subject_type: str
) -> None:
    shared = {"tenant": tenant, "agent": "agent-1", "session": "session-1", "team": "blue"}[subject_type]
    if subject_type == "team":
        assert admin.put("/v1/teams", json={"id": "blue", "agents": ["agent-1"]}).status_code < 300
    limit(admin, subject_type, shared, requests=20, window_s=LONG_S)
    key = service.key(tenant)
    with ExitStack() as stack:
        clients = [stack.enter_context(service.client(key, session="session-1")) for _ in range(AT_ONCE)]
        answers = at_once(clients, lambda _, client: client.get("/v1/units"))
        answers += at_once(clients, lambda n, client: client.get("/v1/units") if n % 2 else inquire(client, session_id="session-1"))
    assert Counter(answer.status_code for answer in answers) == {200: 20, 429: 2 * AT_ONCE - 20}
    assert quota(admin, subject_type, shared)["used"]["requests"] == 20


def test_over_the_limit_of_requests_the_answer_says_when_to_come_back(admin: httpx2.Client, client: httpx2.Client) -> None:
    window_s = 4
    limit(admin, "agent", "agent-1", requests=3, window_s=window_s)
    windows_edge(window_s)
    for _ in range(3):
        assert client.get("/v1/units").status_code == 200
    answer = write(client, unit("a"))
    told = refused(answer, 429, "quota_exceeded")
    wait_s = int(answer.headers["retry-after"])
    assert 1 <= wait_s <= window_s
    assert told["quota"]["resets_in_s"] == wait_s
    assert (told["quota"]["limit"], told["quota"]["used"], told["quota"]["remaining"]) == ("requests", 3, 0)
    assert quota(admin, "agent", "agent-1")["used"]["requests"] == 3, "what was refused does not count"
    time.sleep(wait_s + 0.2)
    stored(client, unit("a"))
    assert quota(admin, "agent", "agent-1")["used"]["requests"] == 1


def test_tokens_of_answers_and_of_new_units_count(admin: httpx2.Client, client: httpx2.Client) -> None:
    limit(admin, "session", "session-1", tokens=400, window_s=LONG_S)
    long = "The valve was opened and the pressure fell. " * 20
    stored(client, unit("a", long, task_id="t"))
    written = quota(admin, "session", "session-1")["used"]["tokens"]
    assert 150 < written < 250
    assert write(client, unit("a", long, task_id="t")).status_code == 201
    assert quota(admin, "session", "session-1")["used"]["tokens"] == written, "what is there already has no tokens"
    # A batch that does not fit is refused whole, in the transaction that would have stored it.
    told = refused(write(client, unit("b", long), unit("c", long)), 429, "quota_exceeded")["quota"]
    assert (told["limit"], told["used"], told["asked"]) == ("tokens", written, 2 * written)
    assert sorted(listed(admin)) == ["a"]
    assert held(admin, "session", "session-1")[0] == 1
    read = ask(client, task_id="t")["consumption"]["tokens"]["value"]
    assert quota(admin, "session", "session-1")["used"]["tokens"] == written + read
    # An answer is given while a token is left, since its length is not known before.
    ask(client, task_id="t")
    answer = inquire(client, task_id="t")
    refused(answer, 429, "quota_exceeded")
    assert int(answer.headers["retry-after"]) > 0
    refused(client.get("/v1/units/a"), 429, "quota_exceeded")


def test_sixteen_writers_end_within_the_tokens_of_a_window(service: Service, tenant: str, admin: httpx2.Client) -> None:
    key = service.key(tenant)
    with service.client(key) as one:
        stored(one, unit("sample"))
    admin.get("/v1/usage")
    each = admin.get("/v1/usage", params={"subject_type": "agent", "subject_id": "agent-1"}).json()["rows"][0]["tokens_written"]
    limit(admin, "agent", "agent-1", tokens=10 * each + 1, window_s=LONG_S)
    with ExitStack() as stack:
        clients = [stack.enter_context(service.client(key)) for _ in range(AT_ONCE)]
        answers = at_once(clients, lambda n, client: write(client, unit(f"u{n}")))
    assert Counter(answer.status_code for answer in answers) == {201: 10, 429: AT_ONCE - 10}
    assert quota(admin, "agent", "agent-1")["used"]["tokens"] == 10 * each
    assert len(listed(admin)) == 11


def test_windows_of_another_length_begin_anew_and_other_changes_do_not(admin: httpx2.Client, client: httpx2.Client) -> None:
    limit(admin, "agent", "agent-1", requests=2, window_s=LONG_S)
    for _ in range(2):
        assert client.get("/v1/units").status_code == 200
    assert limit(admin, "agent", "agent-1", requests=3, window_s=LONG_S)["used"]["requests"] == 2
    assert client.get("/v1/units").status_code == 200
    refused(client.get("/v1/units"), 429, "quota_exceeded")
    assert limit(admin, "agent", "agent-1", requests=3, window_s=LONG_S - 1)["used"]["requests"] == 0
    assert client.get("/v1/units").status_code == 200


def test_who_governs_is_not_shut_out_by_a_quota(service: Service, tenant: str, admin: httpx2.Client) -> None:
    limit(admin, "tenant", tenant, requests=0, units=0, window_s=LONG_S)
    refused(admin.get("/v1/units"), 429, "quota_exceeded")
    refused(write(admin, unit("a")), 429, "quota_exceeded")
    refused(inquire(admin, session_id="s"), 429, "quota_exceeded")
    for path in ("/v1/quotas", "/v1/usage", "/v1/usage/me", "/v1/audit", "/v1/keys"):
        assert admin.get(path).status_code == 200
    limit(admin, "tenant", tenant, units=1)
    stored(admin, unit("a"))
    with service.client() as nobody:
        refused(nobody.get("/v1/units"), 401, "unauthenticated")


def test_a_quota_that_is_set_elsewhere_holds_within_a_second(service: Service, tenant: str, admin: httpx2.Client) -> None:
    """Two replicas over one database: each knows the quotas it read for a second, and counts where both count."""
    scope = service.lastro.registry.local(tenant, "agent-1")
    replica = Quotas(service.lastro.quota_store, UsageMeter(service.lastro.quota_store))
    service.run(replica.admit(scope, Action.READ_UNITS))
    limit(admin, "agent", "agent-1", requests=2, window_s=LONG_S)
    time.sleep(1.1)
    with service.client(service.key(tenant)) as client:
        assert client.get("/v1/units").status_code == 200
        service.run(replica.admit(scope, Action.READ_UNITS))
        refused(client.get("/v1/units"), 429, "quota_exceeded")
    with pytest.raises(QuotaExceeded) as told:
        service.run(replica.admit(scope, Action.READ_UNITS))
    assert (told.value.quota["used"], told.value.quota["remaining"]) == (2, 0)


# --- the doors --------------------------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[str, Any, int, str]] = {
    "no limit": ("agent/a", {}, 422, "invalid_field"),
    "a window of nothing": ("agent/a", {"units": 1, "window_s": 60}, 422, "invalid_field"),
    "requests without a window": ("agent/a", {"requests": 1}, 422, "invalid_field"),
    "tokens without a window": ("agent/a", {"tokens": 1}, 422, "invalid_field"),
    "less than nothing": ("agent/a", {"units": -1}, 422, "invalid_field"),
    "no number": ("agent/a", {"units": "many"}, 422, "invalid_field"),
    "half a unit": ("agent/a", {"units": 1.5}, 422, "invalid_field"),
    "more than can be said": ("agent/a", {"units": 2**60}, 422, "invalid_field"),
    "a window of no length": ("agent/a", {"requests": 1, "window_s": 0}, 422, "invalid_field"),
    "unknown field": ("agent/a", {"units": 1, "pages": 1}, 422, "invalid_field"),
    "unknown subject": ("model/a", {"units": 1}, 422, "invalid_field"),
    "no id": ("agent/a%20b", {"units": 1}, 422, "invalid_id"),
    "another tenant": ("tenant/another", {"units": 1}, 404, "not_found"),
    "no json": ("agent/a", None, 400, "invalid_json"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_quota_that_makes_no_sense_is_refused(admin: httpx2.Client, case: str) -> None:
    path, body, status, code = WRONG[case]
    answer = admin.put(f"/v1/quotas/{path}", content=b"{") if body is None else admin.put(f"/v1/quotas/{path}", json=body)
    refused(answer, status, code)
    assert admin.get("/v1/quotas").json() == {"quotas": []}


def test_ids_of_every_form_have_quotas_of_their_own(admin: httpx2.Client, client: httpx2.Client) -> None:
    names = ["..", "a/b", "a%2Fb", "数据库", "a", "a!", "quota?x=1"]
    for number, name in enumerate(names):
        address = "/v1/quotas/session/" + "".join(f"%{byte:02X}" for byte in name.encode())
        assert admin.put(address, json={"units": number}).status_code == 200
    found = {item["subject_id"]: item["limits"]["units"] for item in admin.get("/v1/quotas").json()["quotas"]}
    assert found == {name: number for number, name in enumerate(names)}
    for number, name in enumerate(names):
        batch = [unit(f"{number}-{n}", session_id=name) for n in range(number + 1)]
        refused(write(client, *batch), 429, "quota_exceeded")
        if number:
            stored(client, *batch[:-1])


def test_a_caller_sees_what_remains_for_it_and_nothing_of_others(service: Service, tenant: str, admin: httpx2.Client) -> None:
    limit(admin, "agent", "agent-1", units=10, requests=100, window_s=LONG_S)
    limit(admin, "agent", "agent-2", units=99)
    limit(admin, "session", "session-1", bytes=1_000)
    limit(admin, "session", "session-2", bytes=1_000)
    with service.client(service.key(tenant), session="session-1") as client:
        stored(client, unit("a", "four"))
        answer = client.get("/v1/usage/me")
        assert answer.status_code == 200
        told = {(item["subject_type"], item["subject_id"]): item for item in answer.json()["quotas"]}
        assert set(told) == {("agent", "agent-1"), ("session", "session-1")}
        agent = told["agent", "agent-1"]
        assert (agent["remaining"]["units"], agent["remaining"]["requests"]) == (9, 99)
        assert agent["resets_at"].endswith("Z")
        assert told["session", "session-1"]["remaining"]["bytes"] == 996
        assert client.get("/v1/usage/me").json() == answer.json(), "asking for it is free"
        refused(client.get("/v1/quotas"), 403, "forbidden")
        refused(client.put("/v1/quotas/agent/agent-1", json={"units": 10**6}), 403, "forbidden")


def test_a_key_bound_to_a_part_of_the_tenant_governs_nothing(service: Service, tenant: str) -> None:
    bound = service.key(tenant, "boss", Role.ADMIN, Scope(organization_id="o"))
    with service.client(bound, organization="o") as client:
        refused(client.get("/v1/quotas"), 403, "forbidden")
        refused(client.put("/v1/quotas/agent/a", json={"units": 1}), 403, "forbidden")
        refused(client.delete("/v1/quotas/agent/a"), 403, "forbidden")
        refused(client.get("/v1/usage"), 403, "forbidden")
        assert client.get("/v1/usage/me").json() == {"quotas": []}


def test_a_team_counts_what_its_members_write_while_they_are_in_it(service: Service, tenant: str, admin: httpx2.Client) -> None:
    with service.client(service.key(tenant)) as client:
        stored(client, unit("before"))
        assert admin.put("/v1/teams", json={"id": "blue", "agents": ["agent-1"]}).status_code < 300
        limit(admin, "team", "blue", units=2)
        stored(client, unit("a"), unit("b"))
        refused(write(client, unit("c")), 429, "quota_exceeded")
        assert admin.put("/v1/teams", json={"id": "blue", "agents": []}).status_code < 300
        stored(client, unit("c"))
    assert held(admin, "team", "blue")[0] == 2
    assert held(admin, "agent", "agent-1")[0] == 4


def test_sending_a_refused_batch_again_changes_nothing(admin: httpx2.Client, client: httpx2.Client) -> None:
    limit(admin, "agent", "agent-1", units=3)
    for _ in range(3):
        refused(send(client, "/v1/units", {"units": [unit(f"u{n}") for n in range(4)]}), 429, "quota_exceeded")
    stored(client, *[unit(f"u{n}") for n in range(3)])
