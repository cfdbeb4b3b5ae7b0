"""`lastro policy` and `lastro team`, through a service and on the store itself (T2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from api.wire import listed, stored
from cli.test_governing import fits, lastro, told
from conftest import Service, unit

from graph.model.scope import Role


@pytest.fixture
def remote(service: Service, tenant: str) -> dict[str, str]:
    """The environment of an admin of the test's tenant."""
    return {"LASTRO_URL": service.url, "LASTRO_KEY": service.key(tenant, "boss", Role.ADMIN)}


def test_a_policy_is_made_listed_explained_and_revoked_through_a_service(
    service: Service, tenant: str, other_tenant: str, remote: dict[str, str]
) -> None:
    with service.client(service.key(tenant, "a1"), session="s") as writer, service.client(service.key(tenant, "a2")) as reader:
        stored(writer, unit("d", kind="decision"), unit("o"))
        assert listed(reader) == []
        made = told(lastro("policy", "create", "--kind", "decision", "--from-agent", "a1", "--to-agent", "a2", "--json", **remote))
        assert (made["kinds"], made["from"]["agents"], made["to"]["agents"]) == (["decision"], ["a1"], ["a2"])
        assert listed(reader) == ["d"]
        assert "a1" in fits(lastro("policy", "list", **remote))
        assert "a2 can see d" in fits(lastro("policy", "explain", "d", "--agent", "a2", **remote))
        assert told(lastro("policy", "explain", "o", "--agent", "a2", "--json", **remote))["visible"] is False
        elsewhere = remote | {"LASTRO_KEY": service.key(other_tenant, "boss", Role.ADMIN)}
        assert told(lastro("policy", "list", "--json", **elsewhere))["policies"] == []
        assert told(lastro("policy", "revoke", made["id"], "--json", **elsewhere), 1)["error"]["code"] == "not_found"
        assert told(lastro("policy", "revoke", made["id"], "--reason", "over", "--json", **remote))["revoked"] is True
        assert listed(reader) == []
    worker = remote | {"LASTRO_KEY": service.key(tenant, "a1")}
    assert told(lastro("policy", "list", "--json", **worker), 1)["error"]["code"] == "forbidden"


def test_templates_and_teams(service: Service, tenant: str, remote: dict[str, str]) -> None:
    assert "across-sessions" in fits(lastro("policy", "templates"))
    assert told(lastro("team", "set", "red", "--agent", "a1", "--agent", "a2", "--json", **remote))["agents"] == ["a1", "a2"]
    assert "a1, a2" in fits(lastro("team", "list", **remote))
    told(lastro("policy", "create", "--template", "team-work", "--json", **remote))
    with service.client(service.key(tenant, "a1"), session="s") as writer, service.client(service.key(tenant, "a2")) as reader:
        stored(writer, unit("o"), unit("n", kind="progress_note"))
        assert listed(reader) == ["o"]
        assert told(lastro("team", "remove", "red", "--json", **remote))["removed"] is True
        assert listed(reader) == []


def test_a_unit_of_an_organisation_is_explained_to_a_reader_elsewhere(service: Service, tenant: str, remote: dict[str, str]) -> None:
    with service.client(service.key(tenant, "a1"), organization="o") as writer:
        stored(writer, unit("d", kind="decision"))
    explain = ("policy", "explain", "d", "--agent", "a1", "--json")
    assert told(lastro(*explain, "--organization", "o", **remote))["visible"] is True
    assert told(lastro(*explain, "--unit-organization", "o", **remote))["visible"] is False
    assert told(lastro(*explain, **remote), 1)["error"]["code"] == "not_found"


def test_what_is_wrong_is_said_with_what_to_do(remote: dict[str, str]) -> None:
    assert told(lastro("policy", "create", "--json", **remote), 2)["error"]["code"] == "command_refused"
    error = told(lastro("policy", "create", "--template", "nothing", "--json", **remote), 2)["error"]
    assert (error["code"], "across-sessions" in error["hint"]) == ("invalid_field", True)
    crossing = ("--kind", "decision", "--organization", "o", "--assessment", "x")
    assert told(lastro("policy", "create", *crossing, "--json", **remote), 2)["error"]["code"] == "reason_missing"


def test_on_the_store_itself(tmp_path: Path) -> None:
    here = {"LASTRO_DATA": str(tmp_path / "data")}
    assert told(lastro("policy", "list", "--json", **here), 2)["error"]["code"] == "command_refused"
    error = told(lastro("policy", "create", "--tenant", "acme", "--template", "across-sessions", "--json", **here), 2)["error"]
    assert "keys create" in error["hint"], "a name that was mistyped makes no tenant"
    for name in ("acme", "other"):
        told(lastro("keys", "create", "--tenant", name, "--agent", "a1", "--json", **here))
    made = told(lastro("policy", "create", "--tenant", "acme", "--template", "across-sessions", "--json", **here))
    assert [item["id"] for item in told(lastro("policy", "list", "--tenant", "acme", "--json", **here))["policies"]] == [made["id"]]
    assert told(lastro("policy", "list", "--tenant", "other", "--json", **here))["policies"] == []
