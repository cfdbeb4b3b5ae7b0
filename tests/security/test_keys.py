"""API keys: shown once, stored hashed, bound, expiring, revoked at once (T6)."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from api.wire import refused, send, stored
from conftest import Service, unit

from graph.model.scope import Role
from graph.model.units import Scope


@pytest.fixture
def admin(service: Service, tenant: str) -> httpx2.Client:
    return service.client(service.key(tenant, "boss", Role.ADMIN))


def test_a_revoked_key_stops_at_once_and_looks_like_a_wrong_one(service: Service, tenant: str) -> None:
    key = service.key(tenant)
    key_id = key.split("_")[1]
    with service.client(key) as client:
        stored(client, unit("a"))
        service.run(service.lastro.registry.revoke_key(service.lastro.registry.local(tenant, "operator"), key_id))
        refused(client.get("/v1/units/a"), 401, "unauthenticated")
        refused(send(client, "/v1/context", {"task_id": "t"}), 401, "unauthenticated")
    with service.client(service.key(tenant)) as client:
        assert client.get("/v1/units/a").status_code == 200, "what it wrote stays"


def test_an_expired_key_looks_like_a_wrong_one(service: Service, tenant: str) -> None:
    now = datetime.now(UTC)
    with service.client(service.key(tenant, expires_at=now - timedelta(seconds=1))) as client:
        refused(client.get("/v1/units"), 401, "unauthenticated")
    with service.client(service.key(tenant, expires_at=datetime.now(UTC) + timedelta(seconds=3))) as client:
        assert client.get("/v1/units").status_code == 200
        time.sleep(3.1)
        refused(client.get("/v1/units"), 401, "unauthenticated")


def test_keys_are_made_listed_and_revoked_over_http(service: Service, admin: httpx2.Client, tenant: str) -> None:
    with admin:
        made = send(admin, "/v1/keys", {"agent_id": "worker", "role": "agent", "expires_at": "2999-01-01T00:00:00+03:00"})
        assert made.status_code == 201
        assert made.headers["cache-control"] == "no-store"
        told = made.json()
        assert re.fullmatch(r"lastro_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", told["key"])
        listed = admin.get("/v1/keys")
        assert told["key"] not in listed.text
        assert told["key"][-43:] not in listed.text
        assert {(item["id"], item["agent_id"], item["role"], item["state"]) for item in listed.json()["keys"]} >= {
            (told["id"], "worker", "agent", "active")
        }
        with service.client(told["key"]) as worker:
            stored(worker, unit("a"))
            assert worker.get("/v1/units/a").json()["owner"]["agent_id"] == "worker"
            assert admin.delete(f"/v1/keys/{told['id']}").status_code == 204
            refused(worker.get("/v1/units/a"), 401, "unauthenticated")
        assert {item["id"]: item["state"] for item in admin.get("/v1/keys").json()["keys"]}[told["id"]] == "revoked"
        assert admin.delete(f"/v1/keys/{told['id']}").status_code == 204, "revoking again changes nothing"


@pytest.mark.parametrize(
    "body",
    [
        {"role": "agent"},
        {"agent_id": "a b", "role": "agent"},
        {"agent_id": "a", "role": "emperor"},
        {"agent_id": "a", "role": "agent", "expires_at": "2001-01-01T00:00:00Z"},
        {"agent_id": "a", "role": "agent", "expires_at": "2999-01-01T00:00:00"},
        {"agent_id": "a", "role": "agent", "tenant_id": "other"},
        {"agent_id": "a", "role": "agent", "bound": {"organization_id": "a b"}},
    ],
)
def test_a_key_that_makes_no_sense_is_not_made(admin: httpx2.Client, body: dict[str, object]) -> None:
    with admin:
        assert send(admin, "/v1/keys", body).status_code == 422
        assert len(admin.get("/v1/keys").json()["keys"]) == 1


def test_keys_of_another_tenant_do_not_exist(service: Service, admin: httpx2.Client) -> None:
    other = service.key("neighbour-of-keys")
    with admin:
        mine = refused(admin.delete("/v1/keys/ffffffffffffffff"), 404, "not_found")
        theirs = refused(admin.delete(f"/v1/keys/{other.split('_')[1]}"), 404, "not_found")
        assert {**mine, "trace_id": ""} == {**theirs, "trace_id": ""}
        assert "neighbour-of-keys" not in admin.get("/v1/keys").text
    with service.client(other) as neighbour:
        assert neighbour.get("/v1/units").status_code == 200


@pytest.mark.parametrize("bound", [Scope(organization_id="o"), Scope(organization_id="o", assessment_id="a")])
def test_a_bound_admin_manages_no_keys(service: Service, tenant: str, bound: Scope) -> None:
    with service.client(service.key(tenant, "boss", Role.ADMIN, bound=bound)) as client:
        refused(client.get("/v1/keys"), 403, "forbidden")
        refused(send(client, "/v1/keys", {"agent_id": "a", "role": "admin"}), 403, "forbidden")


def test_the_database_holds_no_secret_of_a_key(service: Service, tenant: str) -> None:
    key = service.key(tenant)
    found = service.run(service.lastro.registry.find_key(key.split("_")[1]))
    assert found is not None
    secret = key.split("_", 2)[2]
    assert secret not in repr(found)
    assert re.fullmatch(r"[0-9a-f]{64}", found.secret_hash)
