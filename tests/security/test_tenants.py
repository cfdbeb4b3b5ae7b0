"""What one tenant wrote does not exist for another, through any door, and nothing tells that it does (T2, T5, T7)."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from api.wire import GPT, ask, ids, inquire, lineage, listed, read, refused, stored, write
from conftest import Service, edge, unit

SECRET = "cerulean-armadillo"


@pytest.fixture
def theirs(stranger: httpx2.Client) -> httpx2.Client:
    """Another tenant with a unit in the same session and task that the caller uses, and one that replaces it."""
    stored(
        stranger,
        unit("theirs", f"The password is {SECRET}.", task_id="t", actor=SECRET, labels=[SECRET]),
        unit("newer", f"It is {SECRET} now.", "correction", task_id="t", relations=[edge("theirs", "supersession")]),
    )
    return stranger


def same(one: httpx2.Response, other: httpx2.Response) -> None:
    """Two answers that nobody could tell apart, but for their traces."""
    told = [{**answer.json(), "trace_id": ""} for answer in (one, other)]
    assert one.status_code == other.status_code
    assert told[0] == told[1]
    assert sorted(one.headers) == sorted(other.headers)


@pytest.mark.parametrize("path", ["/v1/units/{}", "/v1/units/{}/lineage", "/v1/units/{}/lineage?direction=after&depth=10"])
def test_a_unit_of_another_tenant_is_as_one_that_does_not_exist(theirs: httpx2.Client, client: httpx2.Client, path: str) -> None:
    answer = client.get(path.format("theirs"))
    refused(answer, 404, "not_found")
    same(answer, client.get(path.format("nowhere")))


@pytest.mark.parametrize("more", [{}, {"strategy": "recency"}, {"include_history": True}, {"model": GPT}])
def test_a_context_around_it_is_as_around_nothing(theirs: httpx2.Client, client: httpx2.Client, more: dict[str, Any]) -> None:
    answer = inquire(client, **{"unit_id": "theirs", **more})
    refused(answer, 404, "not_found")
    same(answer, inquire(client, **{"unit_id": "nowhere", **more}))


@pytest.mark.parametrize("edge_type", ["causation", "supersession", "dependency", "provenance"])
def test_an_edge_to_it_is_as_an_edge_to_nothing(theirs: httpx2.Client, client: httpx2.Client, edge_type: str) -> None:
    answer = write(client, unit("mine", relations=[edge("theirs", edge_type)]))
    refused(answer, 422, "target_not_found", index=0, id="mine")
    same(answer, write(client, unit("mine", relations=[edge("nowhere", edge_type)])))
    assert listed(client) == []
    assert len(lineage(theirs, "theirs", direction="after")["units"]) == 2


def test_the_same_task_session_and_id_are_other_things_in_another_tenant(theirs: httpx2.Client, client: httpx2.Client) -> None:
    for query in ({"task_id": "t"}, {"task_id": "t", "step": 9}, {"session_id": "session-1"}, {"task_id": "t", "include_history": True}):
        assert ask(client, **query)["receipt"]["candidates"] == 0
    stored(client, unit("theirs", "My own.", task_id="t"))
    assert read(client, "theirs")["content"] == "My own."
    assert SECRET in read(theirs, "theirs")["content"]
    for query in ({"task_id": "t"}, {"unit_id": "theirs"}, {"session_id": "session-1"}):
        answer = inquire(client, **query, model=GPT)
        assert ids(answer.json()["units"]) == ["theirs"]
        assert SECRET not in answer.text
        assert answer.json()["receipt"]["candidates"] == 1
    assert listed(client) == listed(client, task_id="t") == listed(client, session_id="session-1") == ["theirs"]
    assert ids(ask(theirs, task_id="t")["units"]) == ["newer"]


def test_a_correction_in_one_tenant_replaces_nothing_in_another(theirs: httpx2.Client, client: httpx2.Client) -> None:
    stored(client, unit("theirs", "My own.", task_id="t"), unit("newer", "Not a correction.", task_id="t"))
    assert sorted(ids(ask(client, task_id="t")["units"])) == ["newer", "theirs"]


def test_a_cursor_of_one_tenant_shows_another_only_its_own(theirs: httpx2.Client, client: httpx2.Client) -> None:
    cursor = theirs.get("/v1/units", params={"limit": "1"}).json()["next"]
    stored(client, unit("mine"))
    answer = client.get("/v1/units", params={"cursor": cursor})
    assert SECRET not in answer.text
    assert set(ids(answer.json()["units"])) <= {"mine"}


def test_tenants_whose_names_begin_alike_are_kept_apart(service: Service, tenant: str) -> None:
    names = [tenant, f"{tenant}!", f"{tenant}-2", f"{tenant}2", f"{tenant}é"]
    for name in names:
        with service.client(service.key(name), session="s") as client:
            stored(client, unit("u", f"Of {name}.", task_id="t"))
    for name in names:
        with service.client(service.key(name), session="s") as client:
            assert [item["content"] for item in client.get("/v1/units").json()["units"]] == [f"Of {name}."]
            assert [item["content"] for item in ask(client, task_id="t")["units"]] == [f"Of {name}."]
            assert [item["content"] for item in ask(client, session_id="s")["units"]] == [f"Of {name}."]


def test_errors_say_nothing_of_the_tenant_they_happened_in(theirs: httpx2.Client, tenant: str) -> None:
    answers = [write(theirs, unit("theirs", SECRET)), write(theirs, unit("x", f"<b>{SECRET}</b>")), theirs.get("/v1/units/none")]
    for answer in answers:
        assert answer.status_code >= 400
        assert SECRET not in answer.text
        assert "stranger-" not in answer.text


def test_the_names_that_the_service_keeps_for_itself_are_not_given_out(service: Service) -> None:
    with pytest.raises(Exception, match="the service's own"):
        service.key("lastro:warm-up")
