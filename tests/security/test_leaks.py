"""Nothing crosses: every address, asked by everybody who may not know, and leaks put in on purpose that must be found (T7)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Service
from security.leaks import PROBES, Door, World, build, find_leaks, mutated
from security.test_doors import DOORS

from graph.model.errors import Forbidden, NotFound
from graph.unit_store import UnitStore

TABLE = Path(__file__).parents[2] / "docs" / "security.md"
ELSEWHERE = "another tenant's admin"
OTHER_AGENT = "another agent of the tenant"


@pytest.fixture(scope="module")
def world(service: Service) -> World:
    return build(service)


def test_every_address_is_tried() -> None:
    assert set(PROBES) == set(DOORS), "a door without a row in the leak suite"


def test_nothing_leaks(service: Service, world: World) -> None:
    leaks = [f"{leak.door} to {leak.principal}: {leak.what}" for leak in find_leaks(service, world)]
    assert not leaks, "\n".join(leaks)


def test_the_table_of_paths_and_principals_is_the_one_that_is_tried(world: World) -> None:
    told = " ".join(TABLE.read_text("utf-8").split())
    for method, path in DOORS:
        assert f"| `{method} {path}` |" in told, f"docs/security.md lacks {method} {path}"
    for principal in world.principals:
        assert principal in told


def everybody(text: str) -> str:
    """Every unit is seen: the predicate opens with a yes."""
    return re.sub(r"\(\$sees\[", r"(true OR $sees[", text)


def every_tenant(text: str) -> str:
    """The tenant is bound to nothing: by property maps and by comparisons."""
    text = re.sub(r"tenant_id: \$tenant_id(, )?", "", text)
    return re.sub(r"(\w+)\.tenant_id = \$tenant_id", "true", text)


def of_anybody(text: str) -> str:
    """The full-text index is asked for the words alone, and not for who may see them."""
    return re.sub(r"(\$(?:parameters\.)?query)\b", r"split(\1, ' +access:')[0]", text)


LEAKS: dict[str, tuple[str, Callable[[str], str], Door, str]] = {
    "reading one": ("units/read_units_by_id", everybody, ("GET", "/v1/units/{unit_id:path}"), OTHER_AGENT),
    "listing": ("units/list_units_by_tenant", everybody, ("GET", "/v1/units"), OTHER_AGENT),
    "listing a session": ("units/list_units_by_session", everybody, ("GET", "/v1/units"), OTHER_AGENT),
    "listing a task": ("units/list_units_by_task", everybody, ("GET", "/v1/units"), OTHER_AGENT),
    "the walk": ("context/traverse_units", everybody, ("POST", "/v1/context"), OTHER_AGENT),
    "what is recent in a session": ("context/read_recent_by_session_order", everybody, ("POST", "/v1/context"), OTHER_AGENT),
    "the tiers of a session": ("tiers/read_units_by_tier_order", everybody, ("POST", "/v1/context"), OTHER_AGENT),
    "words": ("search/search_units_by_text", lambda text: everybody(of_anybody(text)), ("POST", "/v1/context"), OTHER_AGENT),
    "another tenant's words": (
        "search/search_units_by_text",
        lambda text: everybody(every_tenant(of_anybody(text))),
        ("POST", "/v1/context"),
        ELSEWHERE,
    ),
    "shared names": ("search/walk_entities", everybody, ("POST", "/v1/context"), OTHER_AGENT),
    "what is recent in a task": ("context/read_recent_by_task_order", everybody, ("POST", "/v1/context"), OTHER_AGENT),
    "edges to what may not be seen": ("units/read_stored_keys", everybody, ("POST", "/v1/units"), OTHER_AGENT),
    "another tenant's units": (
        "units/read_units_by_id",
        lambda text: everybody(every_tenant(text)),
        ("GET", "/v1/units/{unit_id:path}"),
        ELSEWHERE,
    ),
    "another tenant's policies": ("policies/list_policies", every_tenant, ("GET", "/v1/policies"), ELSEWHERE),
    "another tenant's teams": ("policies/list_teams", every_tenant, ("GET", "/v1/teams"), ELSEWHERE),
    "another tenant's keys": ("registry/list_api_keys", every_tenant, ("GET", "/v1/keys"), ELSEWHERE),
    "another tenant's ledger": (
        "ledger/sum_entries",
        lambda text: every_tenant(text).replace("l.key >= $from_key AND l.key < $to_key", "true"),
        ("GET", "/v1/ledger"),
        ELSEWHERE,
    ),
    "another agent's ledger": (
        "ledger/sum_entries",
        lambda text: re.sub(r"l\.agent_id = \$\S*agent_id", "true", text),
        ("GET", "/v1/ledger"),
        OTHER_AGENT,
    ),
    "another tenant's targets": (
        "units/read_stored_keys",
        lambda text: everybody(every_tenant(text)),
        ("POST", "/v1/units"),
        ELSEWHERE,
    ),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_put_in_on_purpose_is_found(service: Service, name: str) -> None:
    statement, change, door, principal = LEAKS[name]
    world = build(service)
    with mutated(service, statement, change):
        assert next(find_leaks(service, world, [door], [principal]), None) is not None, f"the suite is blind to {name}"
    assert list(find_leaks(service, world, [door], [principal])) == []


def test_an_answer_that_tells_what_exists_is_found(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """403 before 404, which needs no text to leak."""
    world = build(service)
    kept = UnitStore.read

    async def telling(self: UnitStore, scope: object, unit_id: str) -> object:
        try:
            return await kept(self, scope, unit_id)  # type: ignore[arg-type]
        except NotFound:
            if "MARK" in unit_id:
                raise Forbidden from None
            raise

    monkeypatch.setattr(UnitStore, "read", telling)
    door: Door = ("GET", "/v1/units/{unit_id:path}")
    assert [leak.what for leak in find_leaks(service, world, [door], [OTHER_AGENT])]
