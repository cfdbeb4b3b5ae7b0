"""Writing and reading units over HTTP, on every engine."""

from __future__ import annotations

from typing import Any

import httpx2
from conftest import Service, edge, unit


def write(client: httpx2.Client, *units: dict[str, Any]) -> httpx2.Response:
    return client.post("/v1/units", json={"units": list(units)})


def test_a_batch_is_stored_with_its_edges_and_owner(client: httpx2.Client, stranger: httpx2.Client, tenant: str) -> None:
    answer = write(
        client,
        unit("b", "It was deployed.", "decision", relations=[edge("a")], timestamp="2026-03-04T08:06:07.123456-03:00"),
        unit("a", "Tests passed.", actor="Ada Example", labels=["ci"]),
    )
    assert answer.status_code == 201
    assert answer.json() == {"written": 2, "unchanged": 0, "ids": ["b", "a"]}
    found = client.get("/v1/units/b").json()
    assert found["content"] == "It was deployed."
    assert found["relations"] == [edge("a")]
    assert found["metadata"]["timestamp"] == "2026-03-04T08:06:07.123456-03:00"
    assert found["owner"] == {"tenant_id": tenant, "agent_id": "agent-1", "session_id": "session-1", "model": None}
    assert "embedding" not in found
    assert stranger.get("/v1/units/b").status_code == 404


def test_the_same_again_changes_nothing_and_other_content_is_a_conflict(client: httpx2.Client) -> None:
    first = unit("a", "The build is green.")
    assert write(client, first).json()["written"] == 1
    assert write(client, first).json() == {"written": 0, "unchanged": 1, "ids": ["a"]}
    # What the service answers can be sent back as it is.
    assert write(client, client.get("/v1/units/a").json()).json()["unchanged"] == 1
    refused = write(client, unit("new", "Not stored."), unit("a", "The build is red."))
    assert refused.status_code == 409
    assert refused.json()["code"] == "unit_conflict"
    assert refused.json()["where"] == {"index": 1, "id": "a"}
    assert client.get("/v1/units/new").status_code == 404


def test_the_service_answers_on(service: Service) -> None:
    with service.client() as anybody:
        assert anybody.get("/healthz").json() == {"status": "alive"}
        ready = anybody.get("/readyz")
        assert ready.status_code == 200
        assert ready.json()["status"] == "ready"
