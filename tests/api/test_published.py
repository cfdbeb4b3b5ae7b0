"""What the service publishes of itself: one status for each error code, OpenAPI, and the JSON Schema of the neutral format (U1)."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from typing import Any, cast

import httpx2
import pytest
from api.wire import ask, read, stored
from conftest import edge, unit

import adapters
import app
import graph
from app.api.problems import STATUS, problem
from graph.model import units as model
from graph.model.base import errors_by_code
from graph.model.errors import LastroError, Unauthenticated, Unavailable, Where

ADDRESSES = {
    "/v1/units": {"get", "post"},
    "/v1/units/{unit_id}": {"get", "delete"},
    "/v1/units/{unit_id}/lineage": {"get"},
    "/v1/context": {"post"},
    "/v1/keys": {"get", "post"},
    "/v1/keys/{key_id}": {"delete"},
    "/v1/keys/{key_id}/rotate": {"post"},
    "/v1/quotas": {"get"},
    "/v1/quotas/{subject_type}/{subject_id}": {"put", "delete"},
    "/v1/attachments/{sha256}": {"get", "put"},
    "/v1/ledger": {"get"},
    "/v1/usage": {"get"},
    "/v1/usage/me": {"get"},
    "/v1/audit": {"get"},
    "/v1/audit/export": {"get"},
    "/v1/policies": {"get", "post"},
    "/v1/policies/templates": {"get"},
    "/v1/policies/explain": {"get"},
    "/v1/policies/{policy_id}": {"delete"},
    "/v1/teams": {"get", "put"},
    "/v1/teams/{team_id}": {"delete"},
    "/v1/tenant": {"delete"},
    "/v1/retention": {"get", "put"},
    "/v1/retention/run": {"post"},
    "/v1/schema": {"get"},
    "/healthz": {"get"},
    "/readyz": {"get"},
}


def all_codes() -> dict[str, type[LastroError]]:
    """Codes of the whole tree, with every module of the service imported."""
    for package in (adapters, app, graph):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    return errors_by_code()


def test_every_error_code_has_a_status_and_every_status_an_error() -> None:
    assert set(all_codes()) == set(STATUS)


def test_codes_are_words_and_stand_for_one_class_each() -> None:
    classes: list[type[LastroError]] = []
    pending: list[type[LastroError]] = [LastroError]
    all_codes()
    while pending:
        classes.append(pending.pop())
        pending += classes[-1].__subclasses__()
    assert len({cls.code for cls in classes}) == len(classes)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", cls.code) for cls in classes)


@pytest.mark.parametrize("code", sorted(STATUS))
def test_every_error_makes_a_problem(code: str) -> None:
    error = all_codes()[code](where=Where(index=0, id="a", field="f"))
    answer = problem(error, "trace-1")
    told = json.loads(bytes(answer.body))
    assert (answer.status_code, told["status"], told["code"]) == (STATUS[code], STATUS[code], code)
    assert told["title"].endswith(".")
    assert told["hint"]
    assert told["where"] == {"index": 0, "id": "a", "field": "f"}
    assert ("retry-after" in answer.headers) == (answer.status_code == 503)
    assert ("www-authenticate" in answer.headers) == isinstance(error, Unauthenticated)
    assert not isinstance(error, Unavailable) or answer.status_code == 503


def test_openapi_lists_every_address_with_what_it_takes(client: httpx2.Client) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert {path.replace(":path}", "}"): set(item) for path, item in document["paths"].items()} == ADDRESSES
    body = document["paths"]["/v1/units"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["units"]["items"]["properties"]["kind"]["enum"] == [kind.value for kind in model.Kind]
    assert "budget_tokens" in document["paths"]["/v1/context"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    names = {item["name"] for item in document["paths"]["/v1/units"]["get"]["parameters"]}
    assert names == {"session_id", "task_id", "limit", "cursor"}
    for reference in re.findall(r'"\$ref": ?"([^"]+)"', json.dumps(document)):
        at: Any = document
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]
        assert isinstance(at, dict), reference


def schema(client: httpx2.Client) -> dict[str, Any]:
    answer = client.get("/v1/schema")
    assert answer.headers["content-type"] == "application/schema+json"
    return answer.json()


def test_the_schema_names_the_closed_sets_with_when_to_use_each(client: httpx2.Client) -> None:
    document = schema(client)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    sets = {
        "Kind": "tool_result decision state_snapshot progress_note constraint correction observation",
        "EdgeType": "dependency provenance supersession causation",
        "EpistemicStatus": "confirmed tentative inferred contested retracted",
        "Tier": "hot warm cold",
        "Trust": "normative approved_artifact draft evidence_candidate agent_output",
    }
    for name, words in sets.items():
        assert [item["const"] for item in document["$defs"][name]["oneOf"]] == words.split()
        assert all(len(item["description"]) > 5 for item in document["$defs"][name]["oneOf"])


KNOWN = frozenset(
    [
        "$ref",
        "anyOf",
        "oneOf",
        "const",
        "enum",
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "pattern",
        "format",
        "title",
        "description",
        "default",
        "$schema",
        "$id",
        "$defs",
    ]
)
TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def errors_of(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> list[str]:
    """What a value breaks, by the part of JSON Schema that ours uses. An unknown keyword fails, so that nothing is passed over."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    kind = schema.get("type")
    if kind is not None and (not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return ["type"]
    found: list[str] = []
    if "$ref" in schema:
        found += errors_of(root["$defs"][schema["$ref"].removeprefix("#/$defs/")], value, root)
    for name in ("anyOf", "oneOf"):
        if name in schema and all(errors_of(part, value, root) for part in schema[name]):
            found.append(name)
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        found.append("enum")
    return found + _inside(schema, value, root)


def _inside(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> list[str]:
    if isinstance(value, str):
        fits = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)) and re.search(
            schema.get("pattern", ""), value
        )
        return [] if fits else ["text"]
    if isinstance(value, list):
        items = cast("list[Any]", value)
        fits = schema.get("minItems", 0) <= len(items) <= schema.get("maxItems", len(items))
        return [*([] if fits else ["items"]), *(text for item in items for text in errors_of(schema.get("items", {}), item, root))]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        known: dict[str, Any] = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        found = [f"missing {name}" for name in schema.get("required", []) if name not in fields]
        found += [f"unknown {name}" for name in fields if name not in known and others is False]
        return found + [text for name, inner in fields.items() for text in errors_of(known.get(name, {}), inner, root)]
    if isinstance(value, int | float):
        return [] if schema.get("minimum", value) <= value <= schema.get("maximum", value) else ["range"]
    return []


GOOD: list[dict[str, Any]] = [
    unit("a"),
    unit("b", relations=[edge("a", "supersession")], labels=["x"], trust="draft", scope={"organization_id": "o", "assessment_id": "a"}),
    unit("c", kind="decision", timestamp="2026-03-04T08:06:07-03:00", tool={"name": "t", "call_id": "1", "arguments": {"a": [1, None]}}),
    unit("d", provenance=["a book", {"source": "s", "sha256": "0" * 64}], task_step=0, tier="cold", relevance_score=1),
]
BAD: list[dict[str, Any]] = [
    {"id": "a", "kind": "observation"},
    unit("a", colour="red"),
    unit("a", kind="rumour"),
    unit("a b"),
    unit("x" * 129),
    unit("a", relations=[{"target_id": "b"}]),
    unit("a", relations=[edge("b")] * 65),
    unit("a", task_step=-1),
    unit("a", relevance_score=1.5),
    unit("a", trust="absolute"),
    unit("a", attachments=[{"uri": "u", "media_type": "a/b", "sha256": "short"}]),
]


def test_the_schema_takes_what_the_service_takes(client: httpx2.Client) -> None:
    document = schema(client)
    for item in GOOD:
        assert errors_of(document, item, document) == [], item
    stored(client, GOOD[0], GOOD[2])
    assert errors_of(document, read(client, "c"), document) == []
    stored(client, unit("in-task", task_id="t"))
    answer = ask(client, task_id="t", model="gpt-5.2")
    assert errors_of(document["$defs"]["ContextAnswer"], answer, document) == []
    assert errors_of(document["$defs"]["Lineage"], client.get("/v1/units/c/lineage").json(), document) == []


@pytest.mark.parametrize("number", range(len(BAD)))
def test_the_schema_refuses_what_the_service_refuses(client: httpx2.Client, number: int) -> None:
    document = schema(client)
    assert errors_of(document, BAD[number], document) != []
    assert client.post("/v1/units", json={"units": [BAD[number]]}).status_code == 422
