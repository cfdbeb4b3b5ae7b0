"""Bad units over HTTP: each refused with its own code, the item named, nothing of its batch stored, nothing of it repeated (U3-U10)."""

from __future__ import annotations

import math
from typing import Any

import httpx2
import pytest
from api.wire import listed, of_all_sessions, read, refused, send, write
from conftest import edge, unit

MARK = "vermilion-pangolin"
"""Stands in what is refused; no answer may repeat it."""
SHA = "0" * 64


def nested(levels: int) -> Any:
    value: Any = MARK
    for _ in range(levels):
        value = {"inside": value}
    return value


CONTENT: dict[str, tuple[Any, int, str]] = {
    "html": (f"<p>{MARK}</p>", 422, "content_is_html"),
    "html in markdown": (f"# A title\n\n- one <b onclick=x>{MARK}</b>", 422, "content_is_html"),
    "script": (f"<script>{MARK}</script>", 422, "content_is_html"),
    "nested json": (f'{{"a": {{"b": ["{MARK}"]}}}}', 422, "content_is_json"),
    "json in a list": (f'[{{"a": "{MARK}"}}, 2]', 422, "content_is_json"),
    "control characters": (f"{MARK} \x01\x02", 422, "content_is_binary"),
    "base64": ("QUJD" + "x9Kq2Zr7" * 40, 422, "content_is_binary"),
    "nul": (f"{MARK}\x00", 422, "nul_in_text"),
    "lone high surrogate": (f"{MARK} \ud83d", 422, "lone_surrogate"),
    "lone low surrogate": (f"{MARK} \ude00", 422, "lone_surrogate"),
    "empty": ("", 422, "content_empty"),
    "nothing to be seen": (" \u200b\n\t", 422, "content_empty"),
    "over the limit in characters": (f"{MARK} " + "word " * 60_000, 413, "content_too_large"),
    "over the limit in bytes only": ("é " * 90_000, 413, "content_too_large"),
    "a megabyte": (f"{MARK} " + "a b " * 262_144, 413, "content_too_large"),
    "a number": (5, 422, "invalid_field"),
    "null": (None, 422, "invalid_field"),
    "an object": ({"text": MARK}, 422, "invalid_field"),
}


@pytest.mark.parametrize("case", CONTENT)
def test_content_that_is_not_text_is_refused(client: httpx2.Client, case: str) -> None:
    content, status, code = CONTENT[case]
    answer = write(client, unit("good"), {**unit("bad"), "content": content})
    refused(answer, status, code, index=1, id="bad", field=None if code == "lone_surrogate" else "content")
    assert MARK not in answer.text
    assert client.get("/v1/units/bad").status_code == 404
    assert listed(client) == []


FIELDS: dict[str, tuple[dict[str, Any], int, str, str | None]] = {
    "unknown kind": ({"kind": MARK}, 422, "unknown_kind", "kind"),
    "kind of the wrong type": ({"kind": 1}, 422, "unknown_kind", "kind"),
    "kind in capitals": ({"kind": "OBSERVATION"}, 422, "unknown_kind", "kind"),
    "unknown edge": ({"relations": [edge("good", MARK)]}, 422, "unknown_edge_type", "relations.0.edge_type"),
    "missing target": ({"relations": [edge("good"), edge(f"nowhere-{MARK}")]}, 422, "target_not_found", "relations"),
    "self edge": ({"relations": [edge("bad")]}, 422, "self_edge", "relations"),
    "edge without type": ({"relations": [{"target_id": "good"}]}, 422, "invalid_field", "relations.0.edge_type"),
    "too many edges": ({"relations": [edge("good")] * 65}, 422, "invalid_field", "relations"),
    "relations not a list": ({"relations": {"good": "causation"}}, 422, "invalid_field", "relations"),
    "unknown field": ({"colour": MARK}, 422, "invalid_field", "colour"),
    "embedding": ({"embedding": [0.1, 0.2]}, 422, "invalid_field", "embedding"),
    "unknown field of metadata": ({"metadata": {"colour": MARK}}, 422, "invalid_field", "metadata.colour"),
    "naive timestamp": ({"metadata": {"timestamp": "2026-03-04T08:06:07"}}, 422, "naive_timestamp", "metadata.timestamp"),
    "a date for a timestamp": ({"metadata": {"timestamp": "2026-03-04"}}, 422, "invalid_field", "metadata.timestamp"),
    "timestamp as a number": ({"metadata": {"timestamp": 1_772_612_767}}, 422, "invalid_field", "metadata.timestamp"),
    "timestamp as digits": ({"metadata": {"timestamp": "1772612767"}}, 422, "invalid_field", "metadata.timestamp"),
    "timestamp that no calendar has": ({"metadata": {"timestamp": "2026-02-30T00:00:00Z"}}, 422, "invalid_field", "metadata.timestamp"),
    "offset over 18 hours": ({"metadata": {"timestamp": "2026-03-04T08:06:07+18:01"}}, 422, "invalid_field", "metadata.timestamp"),
    "before the year 1": ({"metadata": {"timestamp": "0001-01-01T00:00:00+00:01"}}, 422, "invalid_field", "metadata.timestamp"),
    "after the year 9999": ({"metadata": {"timestamp": "9999-12-31T23:59:59-00:01"}}, 422, "invalid_field", "metadata.timestamp"),
    "nul in a name": ({"metadata": {"actor": f"{MARK}\x00"}}, 422, "nul_in_text", "metadata.actor"),
    "a megabyte for a name": ({"metadata": {"actor": MARK * 60_000}}, 413, "too_large", "metadata.actor"),
    "true for a step": ({"metadata": {"task_step": True}}, 422, "invalid_field", "metadata.task_step"),
    "text for a step": ({"metadata": {"task_step": "1"}}, 422, "invalid_field", "metadata.task_step"),
    "fraction for a step": ({"metadata": {"task_step": 1.5}}, 422, "invalid_field", "metadata.task_step"),
    "step below zero": ({"metadata": {"task_step": -1}}, 422, "invalid_field", "metadata.task_step"),
    "step over 31 bits": ({"metadata": {"task_step": 2**31}}, 422, "invalid_field", "metadata.task_step"),
    "step over 64 bits": ({"metadata": {"task_step": 10**30}}, 422, "invalid_field", "metadata.task_step"),
    "score over one": ({"metadata": {"relevance_score": 1.01}}, 422, "invalid_field", "metadata.relevance_score"),
    "score that is no number": ({"metadata": {"relevance_score": math.nan}}, 422, "invalid_field", "metadata.relevance_score"),
    "infinity in arguments": (
        {"metadata": {"tool": {"name": "t", "arguments": {"n": -math.inf}}}},
        422,
        "invalid_field",
        "metadata.tool.arguments",
    ),
    "score as text": ({"metadata": {"relevance_score": "0.5"}}, 422, "invalid_field", "metadata.relevance_score"),
    "unknown status": ({"metadata": {"epistemic_status": MARK}}, 422, "invalid_field", "metadata.epistemic_status"),
    "unknown tier": ({"metadata": {"tier": "lava"}}, 422, "invalid_field", "metadata.tier"),
    "unknown trust": ({"trust": "absolute"}, 422, "invalid_field", "trust"),
    "tool without a name": ({"metadata": {"tool": {"call_id": "c"}}}, 422, "invalid_field", "metadata.tool.name"),
    "arguments of 33 levels": ({"metadata": {"tool": {"name": "t", "arguments": nested(33)}}}, 413, "too_large", "metadata.tool.arguments"),
    "arguments over 256 KiB": (
        {"metadata": {"tool": {"name": "t", "arguments": {"a": MARK * 20_000}}}},
        413,
        "too_large",
        "metadata.tool.arguments",
    ),
    "integer over 64 bits in arguments": (
        {"metadata": {"tool": {"name": "t", "arguments": {"n": 2**64}}}},
        422,
        "invalid_field",
        "metadata.tool.arguments",
    ),
    "attachment without a digest": ({"attachments": [{"uri": "u", "media_type": "a/b"}]}, 422, "invalid_field", "attachments.0.sha256"),
    "attachment with a wrong digest": (
        {"attachments": [{"uri": "u", "media_type": "a/b", "sha256": SHA[1:]}]},
        422,
        "invalid_field",
        "attachments.0.sha256",
    ),
    "too many labels": ({"labels": [f"l{n}" for n in range(33)]}, 422, "invalid_field", "labels"),
    "label with a space": ({"labels": [f"{MARK} x"]}, 422, "invalid_id", "labels.0"),
    "another agent": ({"metadata": {"agent_id": "somebody-else"}}, 403, "agent_mismatch", "metadata.agent_id"),
    "another tenant": ({"owner": {"tenant_id": "somebody-else", "agent_id": "agent-1"}}, 403, "agent_mismatch", "owner"),
    "an assessment nobody asked in": ({"scope": {"organization_id": "o", "assessment_id": "a"}}, 403, "agent_mismatch", "scope"),
    "trust of a publisher": ({"trust": "normative"}, 403, "trust_not_allowed", "trust"),
    "trust of a person": ({"trust": "approved_artifact"}, 403, "trust_not_allowed", "trust"),
}


@pytest.mark.parametrize("case", FIELDS)
def test_a_field_that_is_wrong_is_named_and_refused(client: httpx2.Client, case: str) -> None:
    changed, status, code, field = FIELDS[case]
    answer = write(client, unit("good"), {**unit("bad"), **changed})
    refused(answer, status, code, index=1, id="bad", field=field)
    assert MARK not in answer.text
    assert client.get("/v1/units/good").status_code == 404
    assert listed(client) == []


BAD_IDS = {
    "empty": "",
    "129 characters": "x" * 129,
    "a space": "a b",
    "a tab": "a\tb",
    "a line feed": "a\n",
    "no-break space": "a\u00a0b",
    "zero-width space": "a\u200bb",
    "right-to-left override": "a\u202eb",
    "nul": "a\x00",
    "only a space": " ",
    "a number": 7,
}


@pytest.mark.parametrize("place", ["id", "target", "task"])
@pytest.mark.parametrize("case", BAD_IDS)
def test_an_id_that_could_not_be_seen_is_refused(client: httpx2.Client, case: str, place: str) -> None:
    bad = BAD_IDS[case]
    code = {"nul": "nul_in_text", "a number": "invalid_field"}.get(case, "invalid_id")
    units = {
        "id": unit("x") | {"id": bad},
        "target": unit("x") | {"relations": [edge("y") | {"target_id": bad}]},
        "task": unit("x", task_id=bad),
    }
    field = {"id": "id", "target": "relations.0.target_id", "task": "metadata.task_id"}[place]
    refused(write(client, units[place]), 422, code, index=0, id=None if place == "id" else "x", field=field)
    assert listed(client) == []


@pytest.mark.parametrize("length", [2, 50])
def test_a_cycle_inside_a_batch_is_refused(client: httpx2.Client, length: int) -> None:
    ring = [unit(f"u{n}", relations=[edge(f"u{(n + 1) % length}", "dependency")]) for n in range(length)]
    told = refused(write(client, unit("before"), *ring, unit("after", relations=[edge("u0")])), 422, "cycle_in_batch")
    assert told["where"]["id"] == f"u{told['where']['index'] - 1}", "the item named is one of the ring"
    assert listed(client) == []


def test_the_item_named_for_a_cycle_lies_on_it(client: httpx2.Client) -> None:
    answer = write(client, unit("hangs-on", relations=[edge("a")]), unit("a", relations=[edge("b")]), unit("b", relations=[edge("a")]))
    assert refused(answer, 422, "cycle_in_batch")["where"]["id"] in {"a", "b"}


def test_the_same_id_twice_in_a_batch_is_refused_even_when_equal(client: httpx2.Client) -> None:
    refused(write(client, unit("a"), unit("b"), unit("a")), 422, "duplicate_in_batch", index=2, id="a")
    assert listed(client) == []


def test_a_unit_of_lower_trust_does_not_supersede_a_higher_one(client: httpx2.Client) -> None:
    assert write(client, unit("evidence", trust="evidence_candidate")).status_code == 201
    over = unit("over", "Never mind that.", "correction", relations=[edge("evidence", "supersession")])
    refused(write(client, unit("other"), over), 422, "lower_trust_supersedes", index=1, id="over", field="relations")
    inside = unit("e2", trust="evidence_candidate"), unit("over2", relations=[edge("e2", "supersession")])
    refused(write(client, *inside), 422, "lower_trust_supersedes", index=1, id="over2")
    assert listed(client) == ["evidence"]


def test_the_limit_of_a_batch_is_a_thousand_units(client: httpx2.Client) -> None:
    refused(write(client, *[unit(f"u{n}") for n in range(1001)]), 413, "batch_too_large")
    assert listed(client) == []
    assert write(client, *[unit(f"u{n}") for n in range(1000)]).json()["written"] == 1000


def test_the_longest_of_everything_is_stored(client: httpx2.Client) -> None:
    long_id = "x" * 128
    targets = [unit(f"t{n}") for n in range(64)]
    longest = unit(
        long_id,
        "word " * 52_428 + "w",
        relations=[edge(f"t{n}") for n in range(64)],
        labels=[f"{n:0128}" for n in range(32)],
        actor="a" * 512,
        task_step=2**31 - 1,
        task_id="k" * 128,
        session_id="s" * 128,
        provenance=["p" * 512] * 32,
        tool={"name": "t", "arguments": {"deep": nested(30), "most": 2**64 - 1, "least": -(2**63)}},
    )
    assert write(client, *targets, longest).status_code == 201
    found = read(of_all_sessions(client), long_id)
    assert found["content"] == longest["content"]
    assert found["metadata"]["tool"]["arguments"] == longest["metadata"]["tool"]["arguments"]
    assert len(found["relations"]) == 64
    assert listed(client, task_id="k" * 128) == [long_id]


BODIES: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 400, "invalid_json"),
    "blank": (b"  \n", 400, "invalid_json"),
    "not json": (b"units: []", 400, "invalid_json"),
    "broken off": (b'{"units": [{"id": "a"', 400, "invalid_json"),
    "two documents": (b'{"units": []} {"units": []}', 400, "invalid_json"),
    "not utf-8": (b'{"units": [{"id": "a", "kind": "observation", "content": "caf\xe9"}]}', 400, "invalid_json"),
    "utf-16": ('{"units": []}'.encode("utf-16"), 400, "invalid_json"),
    "1000 levels": (b'{"units": ' + b"[" * 1000 + b"]" * 1000 + b"}", 400, "invalid_json"),
    "a million levels": (b"[" * 1_000_000, 400, "invalid_json"),
    "1000 levels in arguments": (
        b'{"units": [{"id": "a", "kind": "decision", "content": "c", "metadata": {"tool": {"name": "t", "arguments": '
        + b'{"a":' * 1000
        + b"1"
        + b"}" * 1000
        + b"}}}]}",
        400,
        "invalid_json",
    ),
    "null": (b"null", 422, "invalid_field"),
    "a list": (b"[]", 422, "invalid_field"),
    "text": (b'"units"', 422, "invalid_field"),
    "an empty object": (b"{}", 422, "invalid_field"),
    "no units": (b'{"units": []}', 422, "invalid_field"),
    "units not a list": (b'{"units": {"id": "a"}}', 422, "invalid_field"),
    "null for a unit": (b'{"units": [null]}', 422, "invalid_field"),
    "another field": (b'{"units": [], "secret-thing": 1}', 422, "invalid_field"),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_body_that_cannot_be_read_is_refused(client: httpx2.Client, case: str) -> None:
    body, status, code = BODIES[case]
    refused(client.post("/v1/units", content=body, headers={"Content-Type": "application/json"}), status, code)
    assert listed(client) == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml"])
def test_another_content_type_is_refused(client: httpx2.Client, kind: str) -> None:
    refused(client.post("/v1/units", content=b'{"units": []}', headers={"Content-Type": kind}), 400, "invalid_json")


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_by_any_spelling_is_taken(client: httpx2.Client, kind: str) -> None:
    body = b'{"units": [{"id": "a", "kind": "observation", "content": "Seen."}]}'
    assert client.post("/v1/units", content=body, headers={"Content-Type": kind}).status_code == 201


@pytest.mark.parametrize("path", ["/v1/units", "/v1/context"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_refused(client: httpx2.Client, path: str, chunked: bool) -> None:
    piece = b" " * 65_536
    pieces = [b'{"units": [] '] + [piece] * 140 + [b"}"]
    content = iter(pieces) if chunked else b"".join(pieces)
    refused(client.post(path, content=content, headers={"Content-Type": "application/json"}), 413, "body_too_large")
    assert listed(client) == []


def test_a_thousand_failing_items_name_the_first(client: httpx2.Client) -> None:
    answer = send(client, "/v1/units", {"units": [{"id": f"u{n}", "kind": MARK, "content": MARK} for n in range(1000)]})
    refused(answer, 422, "unknown_kind", index=0, id="u0", field="kind")
    assert len(answer.content) < 1000
