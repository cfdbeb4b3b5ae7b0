"""Keys that take the place of others: an overlap, the same rights, one successor, and a trail (T6)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from api.wire import read, refused, send, stored
from conftest import Service, unit
from security.issuer import beside

from app.client import LastroClient
from graph.model.audit import AuditEvent
from graph.model.errors import KeyNotRotatable
from graph.model.keys import MOST_OVERLAP_S, RotationRequest
from graph.model.scope import Role
from graph.model.units import Scope


def rotated(admin: httpx2.Client, key: str, **body: Any) -> dict[str, Any]:
    answer = send(admin, f"/v1/keys/{id_of(key)}/rotate", body)
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return answer.json()


def id_of(key: str) -> str:
    return key.split("_")[1]


def listed(admin: httpx2.Client) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for item in admin.get("/v1/keys").json()["keys"]}


def trail(service: Service, tenant: str) -> list[AuditEvent]:
    scope = service.lastro.registry.local(tenant, "operator")
    return service.run(service.lastro.audit.page(scope)).events


def test_both_keys_work_until_the_overlap_is_over(service: Service, admin: httpx2.Client, tenant: str) -> None:
    old = service.key(tenant, "worker")
    with service.client(old, session="s") as before:
        stored(before, unit("a"))
        made = rotated(admin, old, overlap_s=8)
        ends = time.monotonic() + 8
        assert (made["agent_id"], made["role"], made["state"], made["expires_at"]) == ("worker", "agent", "active", None)
        with service.client(made["key"], session="s") as after:
            assert read(after, "a")["owner"]["agent_id"] == "worker"
            assert before.get("/v1/units/a").status_code == 200
            told = listed(admin)
            assert (told[id_of(old)]["state"], told[id_of(old)]["replaced_by"]) == ("active", made["id"])
            assert told[made["id"]]["replaced_by"] is None
            time.sleep(max(0.0, ends - time.monotonic()) + 0.05)
            refused(before.get("/v1/units/a"), 401, "unauthenticated")
            assert after.get("/v1/units/a").status_code == 200
            assert listed(admin)[id_of(old)]["state"] == "expired"


def test_without_an_overlap_the_old_key_stops_at_once_on_every_replica(service: Service, admin: httpx2.Client, tenant: str) -> None:
    old = service.key(tenant)
    with beside(service) as other, service.client(old) as here, other.client(old) as there:
        assert here.get("/v1/units").status_code == there.get("/v1/units").status_code == 200
        made = rotated(admin, old, overlap_s=0)
        refused(here.get("/v1/units"), 401, "unauthenticated")
        refused(there.get("/v1/units"), 401, "unauthenticated")
        with other.client(made["key"]) as after:
            assert after.get("/v1/units").status_code == 200
    assert listed(admin)[id_of(old)]["state"] == "revoked"


def test_a_day_is_the_overlap_that_is_not_said(service: Service, admin: httpx2.Client, tenant: str) -> None:
    old = service.key(tenant)
    rotated(admin, old)
    ends = datetime.fromisoformat(listed(admin)[id_of(old)]["expires_at"])
    assert abs(ends - datetime.now(UTC) - timedelta(days=1)) < timedelta(minutes=1)


@pytest.mark.parametrize("bound", [Scope(), Scope(organization_id="o"), Scope(organization_id="o", assessment_id="a")])
@pytest.mark.parametrize("role", list(Role))
def test_the_successor_may_do_the_same_and_no_more(service: Service, admin: httpx2.Client, tenant: str, role: Role, bound: Scope) -> None:
    old = service.key(tenant, "worker", role, bound=bound)
    made = rotated(admin, old)
    told = listed(admin)
    same = ("tenant_id", "agent_id", "role", "organization_id", "assessment_id")
    assert {name: told[made["id"]][name] for name in same} == {name: told[id_of(old)][name] for name in same}
    assert (made["organization_id"], made["assessment_id"]) == (bound.organization_id, bound.assessment_id)
    with service.client(made["key"]) as after:
        assert after.get("/v1/keys").status_code == (200 if role is Role.ADMIN and bound == Scope() else 403)


def test_a_successor_holds_for_as_long_as_its_forerunner_was_made_for(service: Service, admin: httpx2.Client, tenant: str) -> None:
    old = service.key(tenant, expires_at=datetime.now(UTC) + timedelta(hours=5))
    made = rotated(admin, old)
    assert abs(datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC) - timedelta(hours=5)) < timedelta(minutes=1)
    assert datetime.fromisoformat(listed(admin)[id_of(old)]["expires_at"]) < datetime.now(UTC) + timedelta(hours=5), (
        "it does not gain by it"
    )
    again = rotated(admin, made["key"], overlap_s=60, expires_at="2999-01-01T00:00:00Z")
    assert again["expires_at"] == "2999-01-01T00:00:00Z"
    endless = rotated(admin, service.key(tenant, expires_at=datetime(9998, 1, 1, tzinfo=UTC)))
    assert endless["expires_at"] is None or endless["expires_at"].startswith("99")


def test_a_key_has_one_successor(service: Service, admin: httpx2.Client, tenant: str) -> None:
    old = service.key(tenant)
    with ThreadPoolExecutor(4) as pool:
        answers = [asked.result() for asked in [pool.submit(send, admin, f"/v1/keys/{id_of(old)}/rotate", {}) for _ in range(4)]]
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    refused(next(answer for answer in answers if answer.status_code == 409), 409, "key_not_rotatable")
    assert len(listed(admin)) == 3, "the admin's, the old one and the new one"


def test_what_has_ended_is_not_rotated(service: Service, admin: httpx2.Client, tenant: str) -> None:
    revoked, expired = service.key(tenant), service.key(tenant, expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert admin.delete(f"/v1/keys/{id_of(revoked)}").status_code == 204
    for key in (revoked, expired):
        refused(send(admin, f"/v1/keys/{id_of(key)}/rotate", {}), 409, "key_not_rotatable")
    assert len(listed(admin)) == 3


@pytest.mark.parametrize(
    "body",
    [
        {"overlap_s": -1},
        {"overlap_s": MOST_OVERLAP_S + 1},
        {"overlap_s": 1.5},
        {"overlap_s": "60"},
        {"overlap_s": None},
        {"expires_at": "2001-01-01T00:00:00Z"},
        {"role": "admin"},
        {"agent_id": "other"},
    ],
)
def test_a_rotation_that_makes_no_sense_changes_nothing(service: Service, admin: httpx2.Client, tenant: str, body: dict[str, Any]) -> None:
    old = service.key(tenant)
    before = listed(admin)
    assert send(admin, f"/v1/keys/{id_of(old)}/rotate", body).status_code == 422
    assert listed(admin) == before


def test_keys_of_another_tenant_cannot_be_rotated(service: Service, admin: httpx2.Client, tenant: str) -> None:
    theirs = service.key(f"{tenant}-neighbour")
    told = refused(send(admin, f"/v1/keys/{id_of(theirs)}/rotate", {}), 404, "not_found")
    nowhere = refused(send(admin, "/v1/keys/ffffffffffffffff/rotate", {}), 404, "not_found")
    assert {**told, "trace_id": ""} == {**nowhere, "trace_id": ""}
    with service.client(theirs) as neighbour:
        assert neighbour.get("/v1/units").status_code == 200


def test_what_is_done_to_keys_leaves_a_trail_without_secrets(service: Service, admin: httpx2.Client, tenant: str) -> None:
    boss = admin.get("/v1/keys").json()["keys"][0]["id"]
    made = send(admin, "/v1/keys", {"agent_id": "worker"}).json()
    new = rotated(admin, made["key"], overlap_s=60)
    for _ in range(2):
        assert admin.delete(f"/v1/keys/{new['id']}").status_code == 204
    refused(send(admin, f"/v1/keys/{new['id']}/rotate", {}), 409, "key_not_rotatable")
    events = trail(service, tenant)
    told = {(event.action, event.target, event.agent_id, event.key_id) for event in events}
    assert told == {
        ("key_created", boss, "operator", "local"),
        ("key_created", made["id"], "boss", boss),
        ("key_created", new["id"], "boss", boss),
        ("key_rotated", made["id"], "boss", boss),
        ("key_revoked", new["id"], "boss", boss),
    }
    assert len(events) == len(told), "revoking again, and what is refused, are no acts"
    assert next(event.numbers for event in events if event.action == "key_rotated") == {"overlap_s": 60}
    for secret in (made["key"], new["key"]):
        assert secret[-43:] not in str([event.model_dump() for event in events])
    assert trail(service, f"{tenant}-neighbour") == []


def test_the_client_rotates_keys(service: Service, tenant: str) -> None:
    boss, old = service.key(tenant, "boss", Role.ADMIN), service.key(tenant, "worker")

    async def work() -> None:
        async with LastroClient(service.url, boss) as client:
            made = await client.rotate_key(id_of(old), RotationRequest(overlap_s=60))
            assert (made.agent_id, made.state) == ("worker", "active")
            with pytest.raises(KeyNotRotatable):
                await client.rotate_key(id_of(old), RotationRequest())

    service.run(work())
