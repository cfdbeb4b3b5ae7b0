"""What a write answers, and that it is whole or nothing, once (U4, U8, U9)."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from api.wire import ids, lineage, listed, read, refused, stored, write
from conftest import Service, edge, unit

from graph.model.scope import Role

SAME: dict[str, dict[str, Any]] = {
    "relations in another order": {"relations": [edge("b", "provenance"), edge("a")]},
    "a relation twice": {"relations": [edge("a"), edge("b", "provenance"), edge("a")]},
    "labels in another order": {"labels": ["y", "x"]},
    "another score": {"metadata": {"timestamp": "2026-03-04T08:06:07Z", "relevance_score": 0.9}},
    "another tier": {"metadata": {"timestamp": "2026-03-04T08:06:07Z", "tier": "cold"}},
    "the defaults said": {"scope": {}, "trust": "agent_output", "attachments": []},
    "another spelling of the time": {"metadata": {"timestamp": "2026-03-04T08:06:07.000+00:00"}},
}
OTHER: dict[str, dict[str, Any]] = {
    "content": {"content": "Something else was seen."},
    "content in another normal form": {"content": "Something was seen\u0301."},
    "kind": {"kind": "decision"},
    "an edge more": {"relations": [edge("a"), edge("b", "provenance"), edge("b")]},
    "an edge less": {"relations": [edge("a")]},
    "an edge of another type": {"relations": [edge("a", "dependency"), edge("b", "provenance")]},
    "a label less": {"labels": ["x"]},
    "the time": {"metadata": {"timestamp": "2026-03-04T08:06:08Z"}},
    "no time": {"metadata": {}},
    "the step": {"metadata": {"timestamp": "2026-03-04T08:06:07Z", "task_step": 1}},
    "the session": {"metadata": {"timestamp": "2026-03-04T08:06:07Z", "session_id": "session-2"}},
    "the status": {"metadata": {"timestamp": "2026-03-04T08:06:07Z", "epistemic_status": "retracted"}},
    "the trust": {"trust": "evidence_candidate"},
}
FIRST = unit("u", relations=[edge("a"), edge("b", "provenance")], labels=["x", "y"], timestamp="2026-03-04T08:06:07Z")


@pytest.mark.parametrize("case", SAME)
def test_the_same_unit_said_otherwise_changes_nothing(client: httpx2.Client, case: str) -> None:
    stored(client, unit("a"), unit("b"), FIRST)
    before = read(client, "u")
    assert write(client, FIRST | SAME[case]).json() == {"written": 0, "unchanged": 1, "ids": ["u"]}
    assert read(client, "u") == before


@pytest.mark.parametrize("case", OTHER)
def test_the_same_id_with_anything_else_is_a_conflict(client: httpx2.Client, case: str) -> None:
    stored(client, unit("a"), unit("b"), FIRST)
    before = read(client, "u")
    answer = write(client, unit("new"), FIRST | OTHER[case])
    refused(answer, 409, "unit_conflict", index=1, id="u")
    assert read(client, "u") == before
    assert client.get("/v1/units/new").status_code == 404


def test_a_unit_without_a_time_can_be_sent_back_as_it_is_read(client: httpx2.Client) -> None:
    stored(client, unit("a"))
    assert write(client, read(client, "a")).json()["unchanged"] == 1
    assert write(client, unit("a")).json()["unchanged"] == 1


def test_a_batch_of_old_and_new_writes_the_new(client: httpx2.Client) -> None:
    stored(client, unit("a"), unit("b", relations=[edge("a")]))
    again = write(client, unit("c", relations=[edge("b"), edge("a", "dependency")]), unit("b", relations=[edge("a")]), unit("a"))
    assert again.json() == {"written": 1, "unchanged": 2, "ids": ["c", "b", "a"]}
    assert sorted(listed(client)) == ["a", "b", "c"]
    found = lineage(client, "a", direction="after")["relations"]
    assert len(found) == 3, "the edge from b to a is there once"


def test_a_batch_may_stand_in_any_order(client: httpx2.Client) -> None:
    chain = [unit(f"u{n}", relations=[edge(f"u{n + 1}", "dependency")]) for n in range(99)]
    stored(client, *chain, unit("u99"))
    assert len(lineage(client, "u0", direction="before", depth=10)["units"]) == 11


def test_one_bad_item_in_the_middle_of_a_large_batch_stores_nothing(client: httpx2.Client) -> None:
    good = [unit(f"u{n}", task_id="t", timestamp="2026-03-04T08:06:07Z") for n in range(500)]
    refused(write(client, *good[:250], unit("bad", relations=[edge("missing")]), *good[250:]), 422, "target_not_found", index=250, id="bad")
    assert listed(client) == listed(client, task_id="t") == listed(client, session_id="session-1") == []
    stored(client, *good)


def test_an_edge_never_reaches_a_stored_unit_later(client: httpx2.Client) -> None:
    stored(client, unit("a"), unit("b", relations=[edge("a")]))
    refused(write(client, unit("a", relations=[edge("b")])), 409, "unit_conflict", index=0, id="a")
    assert read(client, "a")["relations"] == []


def test_parallel_edges_of_different_types_are_kept_each_once(client: httpx2.Client) -> None:
    stored(client, unit("a"), unit("b", relations=[edge("a", name) for name in ("dependency", "causation", "causation", "provenance")]))
    assert sorted(item["edge_type"] for item in read(client, "b")["relations"]) == ["causation", "dependency", "provenance"]
    assert write(client, read(client, "b")).json()["unchanged"] == 1


def test_an_admin_may_write_for_another_agent(service: Service, tenant: str) -> None:
    with service.client(service.key(tenant, "boss", Role.ADMIN)) as boss:
        stored(boss, unit("a", agent_id="worker"), unit("b"))
        assert read(boss, "a")["owner"]["agent_id"] == read(boss, "a")["metadata"]["agent_id"] == "worker"
        assert read(boss, "b")["owner"]["agent_id"] == "boss"


@pytest.mark.parametrize(
    ("role", "trust", "status"),
    [
        (Role.AGENT, "agent_output", 201),
        (Role.AGENT, "evidence_candidate", 201),
        (Role.AGENT, "draft", 403),
        (Role.ADMIN, "approved_artifact", 201),
        (Role.ADMIN, "normative", 403),
        (Role.PUBLISHER, "normative", 201),
        (Role.ANALYST, "agent_output", 403),
    ],
)
def test_each_role_writes_its_levels_of_trust(service: Service, tenant: str, role: Role, trust: str, status: int) -> None:
    with service.client(service.key(tenant, role=role)) as client:
        answer = write(client, unit("a", trust=trust))
        assert answer.status_code == status, answer.text
        assert ids(client.get("/v1/units").json()["units"]) == (["a"] if status == 201 else [])


def test_a_unit_of_equal_or_higher_trust_supersedes(service: Service, tenant: str) -> None:
    with service.client(service.key(tenant, role=Role.PUBLISHER)) as client:
        stored(client, unit("draft", trust="draft"))
        stored(client, unit("better", relations=[edge("draft", "supersession")], trust="draft"))
        stored(client, unit("best", relations=[edge("better", "supersession"), edge("draft", "supersession")], trust="normative"))
        refused(write(client, unit("worse", relations=[edge("best", "supersession")], trust="draft")), 422, "lower_trust_supersedes")
