"""Every address of the service stands in a table with what it takes to enter; a new one without a row fails (R1, T6)."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from api.wire import refused
from conftest import Service
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from app.api.service import create_service
from app.bootstrap import Lastro
from app.registry.permissions import ALLOWED, Action
from app.settings import load_settings
from graph.model.scope import Role

PUBLIC = "public"
DOORS: dict[tuple[str, str], Action | str] = {
    ("POST", "/v1/units"): Action.WRITE_UNITS,
    ("GET", "/v1/units"): Action.READ_UNITS,
    ("GET", "/v1/units/{unit_id:path}"): Action.READ_UNITS,
    ("GET", "/v1/units/{unit_id:path}/lineage"): Action.READ_UNITS,
    ("DELETE", "/v1/units/{unit_id:path}"): Action.ERASE_UNITS,
    ("PUT", "/v1/attachments/{sha256}"): Action.WRITE_UNITS,
    ("GET", "/v1/attachments/{sha256}"): Action.READ_UNITS,
    ("DELETE", "/v1/tenant"): Action.ERASE_TENANT,
    ("GET", "/v1/retention"): Action.MANAGE_RETENTION,
    ("PUT", "/v1/retention"): Action.MANAGE_RETENTION,
    ("POST", "/v1/retention/run"): Action.MANAGE_RETENTION,
    ("POST", "/v1/context"): Action.READ_CONTEXT,
    ("POST", "/v1/keys"): Action.MANAGE_KEYS,
    ("GET", "/v1/keys"): Action.MANAGE_KEYS,
    ("POST", "/v1/keys/{key_id}/rotate"): Action.MANAGE_KEYS,
    ("DELETE", "/v1/keys/{key_id}"): Action.MANAGE_KEYS,
    ("POST", "/v1/policies"): Action.MANAGE_POLICIES,
    ("GET", "/v1/policies"): Action.MANAGE_POLICIES,
    ("GET", "/v1/policies/templates"): Action.MANAGE_POLICIES,
    ("GET", "/v1/policies/explain"): Action.MANAGE_POLICIES,
    ("DELETE", "/v1/policies/{policy_id}"): Action.MANAGE_POLICIES,
    ("GET", "/v1/teams"): Action.MANAGE_POLICIES,
    ("PUT", "/v1/teams"): Action.MANAGE_POLICIES,
    ("DELETE", "/v1/teams/{team_id:path}"): Action.MANAGE_POLICIES,
    ("GET", "/v1/quotas"): Action.MANAGE_QUOTAS,
    ("PUT", "/v1/quotas/{subject_type}/{subject_id:path}"): Action.MANAGE_QUOTAS,
    ("DELETE", "/v1/quotas/{subject_type}/{subject_id:path}"): Action.MANAGE_QUOTAS,
    ("GET", "/v1/usage"): Action.READ_USAGE,
    ("GET", "/v1/usage/me"): Action.READ_OWN_USAGE,
    ("GET", "/v1/ledger"): Action.READ_LEDGER,
    ("GET", "/v1/audit"): Action.READ_AUDIT,
    ("GET", "/v1/audit/export"): Action.READ_AUDIT,
    # The neutral format, the addresses and whether the service is up are the same for everybody and say nothing of any tenant.
    ("GET", "/v1/schema"): PUBLIC,
    ("GET", "/healthz"): PUBLIC,
    ("GET", "/readyz"): PUBLIC,
    ("GET", "/openapi.json"): PUBLIC,
}
CLOSED = [door for door, action in DOORS.items() if action != PUBLIC]
BODIES = [b"", b"{", b'{"units": [{"id": "a"}]}', b"\xff" * 100]
WRONG_KEYS: dict[str, str | None] = {
    "missing": None,
    "empty": "",
    "no scheme": "lastro_0123456789abcdef_" + "x" * 43,
    "another scheme": "Basic bGFzdHJvOmxhc3Rybw==",
    "nothing after the scheme": "Bearer",
    "malformed": "Bearer lastro_key",
    "well formed and unknown": "Bearer lastro_0123456789abcdef_" + "x" * 43,
    "too long": "Bearer lastro_0123456789abcdef_" + "x" * 4_000,
    "looks like cypher": "Bearer lastro_' OR 1=1 //",
}


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    def never() -> Any:
        raise AssertionError("nothing is started")

    service: FastAPI = create_service(load_settings(), never)
    found = {
        (method, route.path)
        for route in iter_route_contexts(service.routes)
        # A route that takes every method, or is mounted from elsewhere, has none: it needs a row of its own.
        for method in route.methods or {"ANY"}
        if method != "HEAD"
    }
    assert found == set(DOORS)


def address(path: str) -> str:
    return (
        path.replace("{unit_id:path}", "some/unit")
        .replace("{team_id:path}", "some-team")
        .replace("{key_id}", "0123456789abcdef")
        .replace("{sha256}", "0" * 64)
        .replace("{subject_type}/{subject_id:path}", "agent/some")
    )


@pytest.mark.parametrize("door", CLOSED, ids=" ".join)
def test_a_closed_door_asks_who_is_there_before_it_reads_anything(service: Service, door: tuple[str, str]) -> None:
    method, path = door
    with service.client() as anybody:
        for body in BODIES:
            for query in ("", "?limit=nonsense&depth=-1&direction=x&cursor=%00"):
                answer = anybody.request(method, address(path) + query, content=body, headers={"Content-Type": "text/plain"})
                refused(answer, 401, "unauthenticated")
                assert answer.headers["www-authenticate"] == 'Bearer realm="lastro"'


def test_a_body_without_end_and_without_a_key_is_not_kept(service: Service) -> None:
    """64 MB, eight times the limit of a body: refused for the key, not for the size, since nothing of it was read."""
    with service.client() as anybody:
        answer = anybody.post("/v1/units", content=(b" " * 65_536 for _ in range(1_000)), headers={"Content-Type": "application/json"})
    refused(answer, 401, "unauthenticated")


@pytest.mark.parametrize("door", [door for door in DOORS if DOORS[door] == PUBLIC], ids=" ".join)
def test_a_public_door_says_the_same_to_everybody(service: Service, tenant: str, door: tuple[str, str]) -> None:
    method, path = door
    with service.client() as anybody, service.client(service.key(tenant)) as somebody:
        one, other = anybody.request(method, path), somebody.request(method, path)
    assert one.status_code == other.status_code == 200
    if path != "/readyz":
        assert one.content == other.content
    assert tenant not in other.text


def without_trace(answer: httpx2.Response) -> tuple[int, dict[str, Any], list[str]]:
    told = answer.json()
    trace = told.pop("trace_id")
    assert answer.headers["lastro-trace"] == trace
    return answer.status_code, told, sorted(name for name in answer.headers if name != "date")


def test_every_kind_of_wrong_key_gets_the_same_answer(service: Service, tenant: str) -> None:
    good = service.key(tenant)
    key_id, secret = good.split("_")[1], good[len("lastro_0123456789abcdef_") :]
    other = service.key(tenant).split("_", 2)[2]
    wrong = dict(WRONG_KEYS)
    wrong["secret of another key"] = f"Bearer lastro_{key_id}_{other}"
    wrong["one letter off"] = f"Bearer lastro_{key_id}_{('A' if secret[0] != 'A' else 'B') + secret[1:]}"
    wrong["capitals"] = f"Bearer {good.upper()}"
    wrong["cut short"] = f"Bearer {good[:-1]}"
    wrong["in quotes"] = f'Bearer "{good}"'
    with service.client() as anybody:
        expected = None
        for name, header in wrong.items():
            answer = anybody.get("/v1/units", headers={} if header is None else {"Authorization": header})
            refused(answer, 401, "unauthenticated")
            assert secret[:10] not in answer.text
            expected = expected or without_trace(answer)
            assert without_trace(answer) == expected, name
        assert anybody.get("/v1/units", headers={"Authorization": f"bearer  {good}"}).status_code == 200


@pytest.mark.parametrize("role", list(Role))
def test_a_role_opens_its_doors_and_no_other(service: Service, tenant: str, role: Role) -> None:
    with service.client(service.key(tenant, role=role)) as client:
        for (method, path), action in DOORS.items():
            if action == PUBLIC:
                continue
            answer = client.request(method, address(path), content=b"{", headers={"Content-Type": "application/json"})
            if action in ALLOWED[role]:
                assert answer.status_code in {200, 400, 404, 422}, (method, path, answer.text)
            else:
                refused(answer, 403, "forbidden")


def test_who_a_caller_is_does_not_come_from_the_caller(service: Service, tenant: str) -> None:
    """Headers name session, model and place; tenant and agent come from the key alone."""
    told = {"Lastro-Tenant": "other", "Lastro-Agent": "other", "X-Forwarded-User": "other", "Tenant": "other"}
    with service.client(service.key(tenant), session="s") as client:
        batch = {"units": [{"id": "a", "kind": "observation", "content": "Seen."}]}
        assert client.post("/v1/units", json=batch, headers=told).status_code == 201
        owner = client.get("/v1/units/a").json()["owner"]
    assert owner == {"tenant_id": tenant, "agent_id": "agent-1", "session_id": "s", "model": None}


@pytest.mark.parametrize("name", ["session", "organization", "assessment"])
def test_a_header_that_is_no_id_is_refused(service: Service, tenant: str, name: str) -> None:
    with service.client(service.key(tenant), **{name: "a b"}) as client:
        refused(client.get("/v1/units"), 422, "invalid_id", field=f"Lastro-{name.title()}")


def test_the_service_needs_no_database_to_say_no(service: Service) -> None:
    """A key that is not even of our form is refused without asking the database."""
    lastro: Lastro = service.lastro
    asked: list[str] = []
    kept = lastro.database.read

    async def counted(name: str, *args: Any, **more: Any) -> Any:
        asked.append(name)
        return await kept(name, *args, **more)

    with pytest.MonkeyPatch.context() as patch, service.client() as anybody:
        patch.setattr(lastro.database, "read", counted)
        anybody.get("/v1/units", headers={"Authorization": "Bearer nothing"})
        assert asked == []
        anybody.get("/v1/units", headers={"Authorization": "Bearer lastro_0123456789abcdef_" + "x" * 43})
        assert asked == ["registry/read_api_key_by_id"]
