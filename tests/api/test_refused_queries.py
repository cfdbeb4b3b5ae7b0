"""Bad context queries and addresses: each refused with its own code and the field named."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from api.wire import CLAUDE, GPT, refused, send, stored
from conftest import unit

MARK = "vermilion-pangolin"

QUERIES: dict[str, tuple[dict[str, Any], int, str, str | None]] = {
    "budget of zero": ({"budget_tokens": 0}, 422, "invalid_budget", "budget_tokens"),
    "budget below zero": ({"budget_tokens": -1}, 422, "invalid_budget", "budget_tokens"),
    "huge budget": ({"budget_tokens": 10**12}, 422, "invalid_budget", "budget_tokens"),
    "budget over 64 bits": ({"budget_tokens": 10**30}, 422, "invalid_budget", "budget_tokens"),
    "budget over the window": ({"budget_tokens": 9_000_000, "model": GPT}, 422, "invalid_budget", "budget_tokens"),
    "fraction of a token": ({"budget_tokens": 600.5}, 422, "invalid_budget", "budget_tokens"),
    "whole float": ({"budget_tokens": 600.0}, 422, "invalid_budget", "budget_tokens"),
    "budget as text": ({"budget_tokens": "600"}, 422, "invalid_budget", "budget_tokens"),
    "true for a budget": ({"budget_tokens": True}, 422, "invalid_budget", "budget_tokens"),
    "null for a budget": ({"budget_tokens": None}, 422, "invalid_budget", "budget_tokens"),
    "a list for a budget": ({"budget_tokens": [600]}, 422, "invalid_budget", "budget_tokens"),
    "budget under the frame": ({"budget_tokens": 1, "model": GPT}, 422, "budget_too_small", "budget_tokens"),
    "budget under the other frame": ({"budget_tokens": 1, "model": CLAUDE}, 422, "budget_too_small", "budget_tokens"),
    "question over the budget": ({"budget_tokens": 600, "model": GPT, "question": MARK * 900}, 422, "budget_too_small", "budget_tokens"),
    "unknown model": ({"model": f"{MARK}-9"}, 422, "unknown_model", "model"),
    "model without a name": ({"model": ""}, 422, "unknown_model", "model"),
    "model of the wrong type": ({"model": 5}, 422, "invalid_field", "model"),
    "step without a task": ({"task_id": None, "step": 3}, 422, "query_not_supported", None),
    "nothing asked": ({"task_id": None}, 422, "query_not_supported", None),
    "two things asked": ({"unit_id": "u"}, 422, "query_not_supported", None),
    "session and task": ({"session_id": "s"}, 422, "query_not_supported", None),
    "walk of a session": ({"task_id": None, "session_id": "s", "strategy": "traversal"}, 422, "query_not_supported", "strategy"),
    "unknown strategy": ({"strategy": MARK}, 422, "invalid_field", "strategy"),
    "unknown kind": ({"kinds": [MARK]}, 422, "unknown_kind", "kinds.0"),
    "no kinds": ({"kinds": []}, 422, "invalid_field", "kinds"),
    "naive as_of": ({"as_of": "2026-03-04T08:06:07"}, 422, "naive_timestamp", "as_of"),
    "step below zero": ({"step": -1}, 422, "invalid_field", "step"),
    "true for a step": ({"step": True}, 422, "invalid_field", "step"),
    "text for a switch": ({"render": "false"}, 422, "invalid_field", "render"),
    "deadline of zero": ({"deadline_ms": 0}, 422, "invalid_field", "deadline_ms"),
    "deadline of an hour": ({"deadline_ms": 3_600_000}, 422, "invalid_field", "deadline_ms"),
    "unknown field": ({"colour": MARK}, 422, "invalid_field", "colour"),
    "tenant of the caller's choice": ({"tenant_id": "other"}, 422, "invalid_field", "tenant_id"),
    "question over 20 000 characters": ({"question": "q" * 20_001}, 422, "invalid_field", "question"),
    "nul in the question": ({"question": f"{MARK}\x00"}, 422, "nul_in_text", "question"),
    "space in an id": ({"task_id": f"{MARK} x"}, 422, "invalid_id", "task_id"),
    "lone surrogate": ({"question": "\ud800"}, 422, "lone_surrogate", None),
}


@pytest.mark.parametrize("case", QUERIES)
def test_a_query_that_cannot_be_answered_is_refused(client: httpx2.Client, case: str) -> None:
    changed, status, code, field = QUERIES[case]
    query = {name: value for name, value in {"task_id": "t", **changed}.items() if value is not None or name == "budget_tokens"}
    answer = send(client, "/v1/context", query)
    refused(answer, status, code, field=field)
    assert MARK not in answer.text


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b"\xff", b'{"a":' * 1000])
def test_a_body_that_is_no_query_is_refused(client: httpx2.Client, body: bytes) -> None:
    answer = client.post("/v1/context", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}, answer.text
    assert answer.json()["code"] in {"invalid_json", "invalid_field"}


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("/v1/units?limit=0", "limit"),
        ("/v1/units?limit=201", "limit"),
        ("/v1/units?limit=-1", "limit"),
        ("/v1/units?limit=1.5", "limit"),
        ("/v1/units?limit=ten", "limit"),
        ("/v1/units?limit=", "limit"),
        ("/v1/units?limit=99999999999999999999", "limit"),
        ("/v1/units?limit=%D9%A1", "limit"),
        ("/v1/units?cursor=nonsense", "cursor"),
        ("/v1/units?cursor=", "cursor"),
        ("/v1/units?cursor=%C3%A9", "cursor"),
        ("/v1/units?cursor=8J-YgA%3D%3D", "cursor"),
        ("/v1/units?session_id=a%20b", "session_id"),
        ("/v1/units?task_id=", "task_id"),
        ("/v1/units?task_id=a%00", "task_id"),
        ("/v1/units?task_id=a&session_id=b", None),
        ("/v1/units/u/lineage?depth=0", "depth"),
        ("/v1/units/u/lineage?depth=11", "depth"),
        ("/v1/units/u/lineage?depth=two", "depth"),
        ("/v1/units/u/lineage?direction=sideways", "direction"),
        ("/v1/units/a%20b", "id"),
        ("/v1/units/a%00b", "id"),
        ("/v1/units/" + "x" * 129, "id"),
    ],
)
def test_an_address_that_means_nothing_is_refused(client: httpx2.Client, address: str, field: str | None) -> None:
    stored(client, unit("u"))
    answer = client.get(address)
    assert answer.status_code == 422, answer.text
    assert answer.json().get("where", {}).get("field") == field


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/v2/units", 404, "not_found"),
        ("GET", "/v1/units/", 404, "not_found"),
        ("GET", "/v1/contexts", 404, "not_found"),
        ("GET", "/V1/UNITS", 404, "not_found"),
        ("DELETE", "/v1/units", 405, "method_not_allowed"),
        ("PUT", "/v1/units/u", 405, "method_not_allowed"),
        ("PATCH", "/v1/units/u", 405, "method_not_allowed"),
        ("GET", "/v1/context", 405, "method_not_allowed"),
        ("POST", "/v1/schema", 405, "method_not_allowed"),
        ("TRACE", "/healthz", 405, "method_not_allowed"),
    ],
)
def test_an_unknown_address_or_method_is_a_problem(client: httpx2.Client, method: str, path: str, status: int, code: str) -> None:
    answer = client.request(method, path)
    if path == "/v1/units/" and answer.status_code == 422:
        return
    refused(answer, status, code)
