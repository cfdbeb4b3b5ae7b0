"""What an attacker tried against policies, erasure and keys, kept as tests."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from api.wire import ask, ids, listed, read, refused, result, send, stored, write
from api.wire import call as tool_call
from conftest import Service, edge, unit

from app.registry.grants import compiled
from graph.model.erasure import TenantErasure
from graph.model.policy import MAX_PAIRS, Party, Policy, Standing
from graph.model.scope import Principal, Role
from graph.model.units import Kind, Scope


def test_a_bound_admin_erases_nothing_outside_of_its_bounds(service: Service, tenant: str, other_tenant: str) -> None:
    bound = Scope(organization_id="o")
    with (
        service.client(service.key(tenant, "boss", Role.ADMIN)) as admin,
        service.client(service.key(tenant, "keeper", Role.PUBLISHER)) as publisher,
        service.client(service.key(tenant, "a1"), organization="p") as elsewhere,
        service.client(service.key(tenant, "a1"), organization="o") as inside,
        service.client(service.key(tenant, "limited", Role.ADMIN, bound)) as limited,
        service.client(service.key(other_tenant, "limited", Role.ADMIN)) as stranger,
    ):
        stored(publisher, unit("rule", kind="constraint", trust="normative"))
        stored(elsewhere, unit("of-p", kind="decision"))
        stored(inside, unit("of-o"))
        grant = {
            "kinds": ["decision"],
            "scope": {"organization_id": "p"},
            "to_scope": {"organization_id": "o"},
            "reason": "A joint matter.",
        }
        assert send(admin, "/v1/policies", grant).status_code == 201
        for name in ("rule", "of-p"):
            assert read(limited, name)["id"] == name, "it may read this"
            refused(limited.delete(f"/v1/units/{name}"), 403, "forbidden")
            refused(stranger.delete(f"/v1/units/{name}"), 404, "not_found")
        assert limited.delete("/v1/units/of-o").status_code == 204


def test_an_agent_erases_nothing_that_is_published_though_it_bears_its_name(service: Service, tenant: str) -> None:
    with (
        service.client(service.key(tenant, "alice", Role.PUBLISHER)) as publisher,
        service.client(service.key(tenant, "boss", Role.ADMIN)) as admin,
        service.client(service.key(tenant, "alice")) as agent,
    ):
        stored(publisher, unit("rule", "Never by day.", "constraint", trust="normative"))
        stored(admin, unit("approved", trust="approved_artifact", agent_id="alice"))
        for name in ("rule", "approved"):
            refused(agent.delete(f"/v1/units/{name}"), 403, "forbidden")
        assert listed(agent) == ["approved", "rule"]


def test_what_an_agent_erases_is_refused_from_it_alone_and_what_an_admin_erases_from_all(service: Service, tenant: str) -> None:
    with (
        service.client(service.key(tenant, "a1")) as mine,
        service.client(service.key(tenant, "a2")) as other,
        service.client(service.key(tenant, "boss", Role.ADMIN)) as admin,
    ):
        stored(mine, unit("m", "All tests pass."))
        assert mine.delete("/v1/units/m").status_code == 204
        refused(write(mine, unit("again", "all  tests pass.")), 409, "unit_erased")
        stored(other, unit("o", "All tests pass."))
        assert admin.delete("/v1/units/o").status_code == 204
        for client in (mine, other, admin):
            refused(write(client, unit("never", "All tests pass.")), 409, "unit_erased")


@pytest.mark.parametrize("unseen", ["\u2800", "\u2065", "\ufff0", "\U000e0000", "\U000e01f0", "\ufffc"])
def test_characters_that_show_nothing_do_not_pass_a_tombstone(service: Service, tenant: str, unseen: str) -> None:
    with service.client(service.key(tenant, "boss", Role.ADMIN)) as admin:
        stored(admin, unit("u", "The number is 4711 \u00e9."))
        assert admin.delete("/v1/units/u").status_code == 204
        refused(write(admin, unit("v", f"The num{unseen}ber is 4711 \u00e9.")), 409, "unit_erased")


def test_no_key_is_made_for_a_tenant_that_is_being_erased_or_gone(service: Service, tenant: str) -> None:
    with service.client(service.key(tenant, "boss", Role.ADMIN)) as admin:
        stored(admin, unit("u"))
        erased = admin.request("DELETE", "/v1/tenant", json={"tenant": tenant})
        assert erased.status_code == 200, erased.text
        assert '"found":0' in erased.text.replace(" ", "")
        refused(send(admin, "/v1/keys", {"agent_id": "ghost", "role": "admin"}), 401, "unauthenticated")
    with service.client(service.key(tenant, "new-owner", Role.ADMIN)) as owner:
        keys = owner.get("/v1/keys").json()["keys"]
        assert [key["agent_id"] for key in keys] == ["new-owner"]
        assert listed(owner) == []


def test_while_a_tenant_is_being_erased_its_old_keys_make_no_new_ones(service: Service, tenant: str, other_tenant: str) -> None:
    key = service.key(tenant, "boss", Role.ADMIN)
    scope = service.lastro.registry.local(tenant, "operator")
    with service.client(key) as admin, service.client(service.key(other_tenant, "boss", Role.ADMIN)) as stranger:
        stored(admin, unit("u"))
        service.run(service.lastro.erasure.begin_tenant(scope, TenantErasure(tenant=tenant)))
        for path, body in (
            ("/v1/keys", {"agent_id": "ghost"}),
            ("/v1/policies", {"kinds": ["decision"]}),
            ("/v1/units", {"units": [unit("v")]}),
        ):
            refused(send(admin, path, body), 409, "tenant_being_erased")
        refused(admin.post(f"/v1/keys/{key.split('_')[1]}/rotate", json={}), 409, "tenant_being_erased")
        assert send(stranger, "/v1/keys", {"agent_id": "worker"}).status_code == 201
        service.run(service.lastro.erasure.tenant(scope, TenantErasure(tenant=tenant), lambda _: None))
        refused(admin.get("/v1/units"), 401, "unauthenticated")


def test_agents_names_of_the_services_own_are_refused(service: Service, tenant: str) -> None:
    with service.client(service.key(tenant, "boss", Role.ADMIN)) as admin:
        refused(send(admin, "/v1/keys", {"agent_id": "lastro:retention"}), 422, "invalid_id")
        refused(send(admin, "/v1/keys", {"agent_id": "x", "bound": {"assessment_id": "a"}}), 422, "invalid_field")


def test_a_huge_policy_is_refused_and_one_that_grew_opens_nothing_and_costs_nothing(service: Service, tenant: str) -> None:
    many = [f"a{number}" for number in range(MAX_PAIRS)]
    with service.client(service.key(tenant, "boss", Role.ADMIN)) as admin:
        assert admin.put("/v1/teams", json={"id": "all/of-them", "agents": many[:1000]}).status_code == 200
        told: dict[str, Any] = {"kinds": ["decision"], "from": {"teams": ["all/of-them"], "sessions": ["s1", "s2"]}}
        refused(send(admin, "/v1/policies", told), 422, "invalid_field", field="from")
        assert admin.delete("/v1/teams/all%2Fof-them").status_code == 204
    party = Party(teams=["t"], sessions=[f"s{number}" for number in range(64)])
    policy = Policy.model_construct(
        id="p",
        kinds=[Kind.DECISION],
        source=party,
        to=Party(),
        among="any",
        scope=Scope(),
        to_scope=Scope(),
        expires_at=None,
        revoked_at=None,
    )
    principal = Principal(tenant, "reader", Role.AGENT, "k", Scope(), standing=Standing((policy,), {"t": frozenset(many)}))
    began = time.perf_counter()
    seen = compiled(principal, [""], None, None, datetime.now(UTC))
    assert time.perf_counter() - began < 0.1
    place = seen[""]
    assert isinstance(place, dict)
    assert place["owners"] == {}


def test_anothers_results_do_not_part_a_call_from_its_own(service: Service, tenant: str) -> None:
    with (
        service.client(service.key(tenant, "boss", Role.ADMIN)) as admin,
        service.client(service.key(tenant, "alice")) as alice,
        service.client(service.key(tenant, "bob")) as bob,
    ):
        assert send(admin, "/v1/policies", {"kinds": ["decision"]}).status_code == 201
        stored(alice, tool_call("call", 1, task_id="t"))
        stored(bob, *[unit(f"noise-{n}", kind="tool_result", tool={"name": "look"}, relations=[edge("call")]) for n in range(8)])
        stored(alice, result("own", "call", 1, "It is slow.", task_id="t"))
        found = {item["id"]: item["reason"] for item in ask(alice, task_id="t")["units"]}
        assert set(found) == {"call", "own"}
        assert "pair" in found.values()
        assert ids(ask(alice, unit_id="own")["units"]) == ["call", "own"]


def test_reading_across_places_leaves_a_trail_though_nothing_fits_the_budget(service: Service, tenant: str) -> None:
    with (
        service.client(service.key(tenant, "boss", Role.ADMIN)) as admin,
        service.client(service.key(tenant, "a1"), organization="o") as writer,
        service.client(service.key(tenant, "a2"), organization="p") as reader,
    ):
        stored(writer, unit("far", "word " * 200, "decision", task_id="t"))
        grant = {"kinds": ["decision"], "scope": {"organization_id": "o"}, "reason": "A joint matter."}
        assert send(admin, "/v1/policies", grant).status_code == 201
        assert ask(reader, task_id="t", budget_tokens=20)["units"] == []
        assert next(event["action"] for event in admin.get("/v1/audit").json()["events"]) == "cross_assessment_read"
