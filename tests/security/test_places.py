"""Organisations and assessments inside a tenant: what was written in one is seen in it and nowhere beside it (T5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx2
import pytest
from api.wire import GPT, ask, ids, inquire, lineage, listed, refused, stored, write
from conftest import Service, edge, unit

from graph.model.units import Scope

At = Callable[..., httpx2.Client]


@pytest.fixture
def at(service: Service, tenant: str) -> Iterator[At]:
    """A client in a place of the test's tenant, with one key that is bound to nothing."""
    key = service.key(tenant)
    with ExitStack() as stack:

        def make(organization: str | None = None, assessment: str | None = None) -> httpx2.Client:
            place = {name: value for name, value in (("organization", organization), ("assessment", assessment)) if value is not None}
            return stack.enter_context(service.client(key, session="s", **place))

        yield make


@pytest.fixture
def filled(at: At) -> At:
    """One unit of the tenant, of each of two organisations, and of each of three assessments."""
    stored(at(), unit("tenant", "Of the tenant.", task_id="t"))
    for organization in ("o1", "o2"):
        stored(at(organization), unit(organization, f"Of {organization}.", task_id="t"))
    for organization, assessment in (("o1", "a1"), ("o1", "a2"), ("o2", "a1")):
        name = f"{organization}-{assessment}"
        stored(at(organization, assessment), unit(name, f"Of {name}.", task_id="t", relations=[edge("tenant"), edge(organization)]))
    return at


SEEN = {
    (None, None): {"tenant"},
    ("o1", None): {"tenant", "o1"},
    ("o2", None): {"tenant", "o2"},
    ("o3", None): {"tenant"},
    ("o1", "a1"): {"tenant", "o1", "o1-a1"},
    ("o1", "a2"): {"tenant", "o1", "o1-a2"},
    ("o2", "a1"): {"tenant", "o2", "o2-a1"},
    ("o2", "a2"): {"tenant", "o2"},
}
ALL = {"tenant", "o1", "o2", "o1-a1", "o1-a2", "o2-a1"}


def test_every_door_shows_the_place_and_what_is_above_it(filled: At) -> None:
    for place, seen in SEEN.items():
        client = filled(*place)
        assert set(listed(client)) == set(listed(client, task_id="t")) == set(listed(client, session_id="s")) == seen, place
        for query in ({"task_id": "t"}, {"task_id": "t", "step": 5}, {"session_id": "s"}, {"task_id": "t", "strategy": "recency"}):
            answer = ask(client, **query, model=GPT)
            assert set(ids(answer["units"])) == seen, (place, query)
            assert answer["receipt"]["candidates"] == len(seen)
        for name in ALL:
            found = client.get(f"/v1/units/{name}")
            walked = client.get(f"/v1/units/{name}/lineage?depth=10")
            around = inquire(client, unit_id=name)
            if name in seen:
                assert found.json()["id"] == name
                assert set(ids(walked.json()["units"])) <= seen
                assert set(ids(around.json()["units"])) <= seen
                assert all(relation["target_id"] in seen for relation in found.json()["relations"])
            else:
                for answer in (found, walked, around):
                    refused(answer, 404, "not_found")


def test_an_assessment_without_its_organisation_is_a_place_of_its_own(filled: At) -> None:
    """The same assessment id under two organisations is two assessments, and under none a third."""
    client = filled(None, "a1")
    assert set(listed(client)) == {"tenant"}


def test_a_unit_says_where_it_belongs(filled: At) -> None:
    assert filled("o1", "a1").get("/v1/units/o1-a1").json()["scope"] == {"organization_id": "o1", "assessment_id": "a1"}
    assert filled("o1", "a1").get("/v1/units/o1").json()["scope"] == {"organization_id": "o1", "assessment_id": None}
    assert filled().get("/v1/units/tenant").json()["scope"] == {"organization_id": None, "assessment_id": None}


def test_a_unit_may_name_its_place_when_the_request_is_in_it(at: At) -> None:
    inside = unit("a", scope={"organization_id": "o1", "assessment_id": "a1"})
    for place in ((None, None), ("o1", None), ("o2", "a1"), ("o1", "a2")):
        refused(write(at(*place), inside), 403, "agent_mismatch", index=0, id="a", field="scope")
    stored(at("o1", "a1"), inside, unit("b", scope={"organization_id": "o1"}))
    assert set(listed(at("o1"))) == {"b"}


def test_edges_do_not_lead_into_a_place_that_cannot_be_seen(filled: At) -> None:
    client = filled("o1", "a1")
    for edge_type in ("causation", "supersession", "dependency"):
        answer = write(client, unit("x", relations=[edge("o1-a2", edge_type)]))
        refused(answer, 422, "target_not_found", index=0, id="x")
    assert len(lineage(filled("o1", "a2"), "o1-a2", direction="after")["units"]) == 1


def test_an_id_taken_out_of_sight_is_a_conflict_without_a_word_of_what_is_there(filled: At) -> None:
    """Ids are unique in a tenant; a writer who may not see the holder learns that the id is taken and nothing else."""
    for content in ("Something else.", "Of o1-a2."):
        answer = write(filled("o1", "a1"), unit("o1-a2", content, task_id="t"))
        told = refused(answer, 409, "unit_conflict", index=0, id="o1-a2")
        assert set(told["where"]) == {"index", "id"}
        assert not {"a2", "Of o1-a2."} & {told["title"], told["hint"], *told["where"].values()}


def test_a_correction_in_an_assessment_replaces_only_there(filled: At) -> None:
    stored(filled("o1", "a1"), unit("fix", "Of the tenant, mended.", "correction", task_id="t", relations=[edge("tenant", "supersession")]))
    assert set(ids(ask(filled("o1", "a1"), task_id="t")["units"])) == {"fix", "o1", "o1-a1"}
    for place in ((None, None), ("o1", None), ("o1", "a2"), ("o2", "a1")):
        answer = ask(filled(*place), task_id="t")
        assert "tenant" in ids(answer["units"]), place
        assert "fix" not in str(answer)


def test_a_pair_whose_result_is_out_of_sight_shows_the_call_alone(filled: At) -> None:
    tool = {"name": "look", "call_id": "c"}
    stored(filled("o1"), unit("call", "Looked.", "decision", task_id="p", tool=tool))
    stored(filled("o1", "a1"), unit("result", "Seen.", "tool_result", task_id="p", tool=tool, relations=[edge("call")]))
    assert set(ids(ask(filled("o1", "a1"), task_id="p", model=GPT)["units"])) == {"call", "result"}
    answer = ask(filled("o1", "a2"), task_id="p", model=GPT)
    assert ids(answer["units"]) == ["call"]
    assert "result" not in str(answer["receipt"])


def test_more_corrections_out_of_sight_than_a_unit_remembers_do_not_bring_it_back(filled: At) -> None:
    """A unit keeps the newest eight that replaced it; one in sight must count even when eight out of sight came after it."""
    stored(filled("o1", "a1"), unit("seen", "Mended.", task_id="t", relations=[edge("o1", "supersession")]))
    for n in range(9):
        stored(filled("o1", "a2"), unit(f"hidden{n}", f"Hidden {n}.", task_id="t", relations=[edge("o1", "supersession")]))
    assert "o1" not in ids(ask(filled("o1", "a1"), task_id="t")["units"])


def test_a_bound_key_stays_in_its_place_whatever_the_headers_say(service: Service, tenant: str, filled: At) -> None:
    key = service.key(tenant, bound=Scope(organization_id="o1", assessment_id="a1"))
    with service.client(key) as bound:
        assert set(listed(bound)) == {"tenant", "o1", "o1-a1"}
        stored(bound, unit("bound"))
        assert bound.get("/v1/units/bound").json()["scope"] == {"organization_id": "o1", "assessment_id": "a1"}
    for place in ({"organization": "o2"}, {"assessment": "a2"}, {"organization": "o1", "assessment": "a2"}):
        with service.client(key, **place) as bound:
            for answer in (bound.get("/v1/units"), inquire(bound, task_id="t"), write(bound, unit("x"))):
                refused(answer, 404, "not_found")
    with service.client(key, organization="o1", assessment="a1") as bound:
        assert set(listed(bound)) == {"tenant", "o1", "o1-a1", "bound"}
    with service.client(service.key(tenant, bound=Scope(organization_id="o1")), assessment="a2") as bound:
        assert set(listed(bound)) == {"tenant", "o1", "o1-a2"}


def test_what_a_bound_key_may_not_see_looks_like_what_does_not_exist(service: Service, tenant: str, filled: At) -> None:
    with service.client(service.key(tenant, bound=Scope(organization_id="o1", assessment_id="a1"))) as bound:
        hidden, absent = bound.get("/v1/units/o2-a1"), bound.get("/v1/units/nowhere")
        assert {**hidden.json(), "trace_id": ""} == {**absent.json(), "trace_id": ""}
