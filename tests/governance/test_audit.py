"""The audit trail: who did what to which scope and why; read by admins of the tenant, exported whole, changed by nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from api.wire import ask, refused, stored, write
from conftest import Service, unit

from graph.model.scope import Role
from graph.model.units import Scope

MARK = "chartreuse-axolotl"


@pytest.fixture
def admin(service: Service, tenant: str) -> Iterator[httpx2.Client]:
    with service.client(service.key(tenant, "boss", Role.ADMIN), session="desk") as found:
        yield found


def events(client: httpx2.Client, **asked: Any) -> list[dict[str, Any]]:
    """Events of every page."""
    found: list[dict[str, Any]] = []
    more: dict[str, str] = {}
    while True:
        answer = client.get("/v1/audit", params={**asked, **more})
        assert answer.status_code == 200, answer.text
        found += answer.json()["events"]
        if answer.json()["next"] is None:
            return found
        more = {"cursor": answer.json()["next"]}


def exported(client: httpx2.Client, **asked: Any) -> list[dict[str, Any]]:
    answer = client.get("/v1/audit/export", params=asked)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.text == "" or answer.text.endswith("\n")
    return [json.loads(line) for line in answer.text.split("\n")[:-1]]


def set_quota(client: httpx2.Client, subject: str, units: int, **params: str) -> None:
    assert client.put(f"/v1/quotas/{subject}", json={"units": units}, params=params).status_code == 200


def of_quotas(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in found if event["action"].startswith("quota_")]


def test_what_governs_is_written_down_with_who_and_why(admin: httpx2.Client, tenant: str) -> None:
    began = datetime.now(UTC)
    body = {"units": 5, "requests": 10, "window_s": 60}
    assert admin.put("/v1/quotas/agent/triage", json=body, params={"reason": "the trial begins"}).status_code == 200
    assert admin.delete("/v1/quotas/agent/triage", params={"reason": "it is over"}).status_code == 204
    removed, changed = of_quotas(events(admin))
    assert began - timedelta(seconds=1) <= datetime.fromisoformat(changed["at"]) <= datetime.fromisoformat(removed["at"])
    key_id = admin.headers["authorization"].split("_")[1]
    expected = {
        "agent_id": "boss",
        "role": "admin",
        "key_id": key_id,
        "session_id": "desk",
        "place": "",
        "target": "agent triage",
        "outcome": "done",
    }
    for event, action, reason, numbers in (
        (changed, "quota_changed", "the trial begins", body),
        (removed, "quota_removed", "it is over", {}),
    ):
        told = {name: value for name, value in event.items() if name not in {"id", "at"}}
        assert told == expected | {"action": action, "reason": reason, "numbers": numbers}
    assert changed["id"] != removed["id"]


def test_what_did_not_happen_is_not_told(admin: httpx2.Client, client: httpx2.Client) -> None:
    refused(admin.put("/v1/quotas/agent/a", json={}), 422, "invalid_field")
    refused(admin.delete("/v1/quotas/agent/a"), 404, "not_found")
    refused(client.put("/v1/quotas/agent/a", json={"units": 1}), 403, "forbidden")
    assert of_quotas(events(admin)) == []


def test_pages_and_the_export_hold_the_same_newest_first(admin: httpx2.Client) -> None:
    for number in range(12):
        set_quota(admin, f"session/s{number}", number)
    paged = events(admin, limit="5")
    assert paged == events(admin, limit="200") == exported(admin)
    assert [event["target"] for event in of_quotas(paged)] == [f"session s{number}" for number in reversed(range(12))]
    assert len({event["id"] for event in paged}) == len(paged)


def test_events_are_filtered_by_action_and_time(admin: httpx2.Client) -> None:
    set_quota(admin, "agent/a", 1)
    assert admin.delete("/v1/quotas/agent/a").status_code == 204
    middle = events(admin, action="quota_removed")[0]["at"]
    set_quota(admin, "agent/b", 1)
    assert [event["target"] for event in events(admin, action="quota_changed", limit="1")] == ["agent b", "agent a"]
    both = {"action": ["quota_changed", "quota_removed"]}
    for found in (events(admin, **both), exported(admin, **both)):
        assert [event["action"] for event in found] == ["quota_changed", "quota_removed", "quota_changed"]
    assert [event["target"] for event in events(admin, since=middle, **both)] == ["agent b", "agent a"]
    assert [event["action"] for event in events(admin, until=middle, **both)] == ["quota_changed"]
    assert [event["action"] for event in exported(admin, since=middle, until=middle, **both)] == []
    for asked in ({"action": "nothing"}, {"since": "2026-03-04T08:06:07"}, {"until": "now"}, {"limit": "0"}, {"cursor": "x"}):
        assert admin.get("/v1/audit", params=asked).status_code == 422
    assert admin.get("/v1/audit/export", params={"action": "nothing"}).status_code == 422


def test_another_tenants_events_are_never_seen(service: Service, admin: httpx2.Client) -> None:
    other = f"other-{admin.headers['authorization'].split('_')[1]}"
    with service.client(service.key(other, "chief", Role.ADMIN)) as theirs:
        set_quota(theirs, f"session/{MARK}", 1, reason=MARK)
        set_quota(admin, "session/mine", 1)
        assert MARK in theirs.get("/v1/audit").text
        cursor = theirs.get("/v1/audit", params={"limit": "1"}).json()["next"]
        assert "mine" not in theirs.get("/v1/audit/export").text
    for path in ("/v1/audit", "/v1/audit/export"):
        for asked in ({}, {"action": "quota_changed"}, {"since": "2020-01-01T00:00:00Z"}):
            answer = admin.get(path, params=asked)
            assert answer.status_code == 200
            assert MARK not in answer.text
            assert other not in answer.text
    assert MARK not in admin.get("/v1/audit", params={"cursor": cursor}).text


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_only_admins_read_the_trail(service: Service, tenant: str, role: Role) -> None:
    with service.client(service.key(tenant, role=role)) as client:
        refused(client.get("/v1/audit"), 403, "forbidden")
        refused(client.get("/v1/audit/export"), 403, "forbidden")


def test_a_bound_key_does_not_read_the_trail(service: Service, tenant: str) -> None:
    with service.client(service.key(tenant, "boss", Role.ADMIN, Scope(organization_id="o", assessment_id="s"))) as client:
        refused(client.get("/v1/audit"), 403, "forbidden")
        refused(client.get("/v1/audit/export"), 403, "forbidden")


def test_the_trail_holds_no_content_and_no_key(service: Service, tenant: str, admin: httpx2.Client, client: httpx2.Client) -> None:
    made = admin.post("/v1/keys", json={"agent_id": "worker"}).json()["key"]
    stored(client, unit("a", f"It is {MARK}.", task_id="t", actor=MARK, tool={"name": "look", "call_id": "c", "arguments": {"x": MARK}}))
    refused(write(client, unit("a", f"It was {MARK}.")), 409, "unit_conflict")
    ask(client, task_id="t")
    set_quota(admin, "agent/agent-1", 1)
    refused(write(client, unit("b", MARK)), 429, "quota_exceeded")
    key_id = made.split("_")[1]
    assert admin.delete(f"/v1/keys/{key_id}").status_code == 204
    assert client.delete("/v1/units/a").status_code in {204, 403, 404, 405}
    for text in (admin.get("/v1/audit", params={"limit": "200"}).text, admin.get("/v1/audit/export").text):
        assert "quota_changed" in text
        assert MARK not in text
        for key in (made, admin.headers["authorization"], client.headers["authorization"]):
            secret = key.split("_", 2)[2]
            assert secret not in text
            assert secret[:12] not in text


def test_no_door_changes_the_trail(service: Service, admin: httpx2.Client) -> None:
    set_quota(admin, "agent/a", 1, reason="kept")
    before = exported(admin)
    event_id = before[0]["id"]
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("/v1/audit", "/v1/audit/export", f"/v1/audit/{event_id}", f"/v1/audit/{event_id}/reason"):
            answer = admin.request(method, path, json={"reason": "another", "id": event_id, "events": []})
            assert answer.status_code in {404, 405}, (method, path)
    # An event's id is no unit, key, quota or team either.
    for path in (f"/v1/units/{event_id}", f"/v1/keys/{event_id}", f"/v1/quotas/agent/{event_id}", f"/v1/teams/{event_id}"):
        assert admin.delete(path).status_code in {404, 405, 422}, path
    assert exported(admin)[-len(before) :] == before
    document = admin.get("/openapi.json").json()
    assert {method for path, item in document["paths"].items() if path.startswith("/v1/audit") for method in item} == {"get"}
    statements = service.lastro.database.statements
    writers = {item.name for item in statements if ":Event" in item.text and item.mode.value == "write"}
    assert {name for name in writers if not name.startswith("erasure/")} == {"audit/create_event"}, "only a tenant's erasure ends its trail"
