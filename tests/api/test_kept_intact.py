"""Odd but lawful input comes back as it was sent, on every engine (U7, U10)."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from api.wire import GPT, ask, ids, lineage, listed, of_all_sessions, read, stored, write
from conftest import edge, unit

TEXTS = {
    "right to left": "שלום עולם — مرحبا بالعالم 123",
    "chinese, japanese, korean": "数据库在迁移之前备份。データベース。데이터베이스.",
    "emoji joined to a family": "The on-call 👩🏽‍🚒 and her family 👨‍👩‍👧‍👦 🏳️‍🌈",
    "combining accents stay apart": "cafe\u0301 is not caf\u00e9",
    "beyond the basic plane": "𐍈𐌰 𝄞 \U0010ffff",
    "noncharacters": "edge \uffff \ufffe \ufdd0 end",
    "replacement character": "was \ufffd here",
    "windows lines": "first\r\nsecond\r\n",
    "old mac lines": "first\rsecond",
    "tabs and ends": "\ta\tb \n\n c  \n",
    "line and paragraph separators": "a\u2028b\u2029c",
    "direction marks": "abc \u202eevil\u202c def",
    "byte order mark": "\ufeffstarts with a mark",
    "quotes and backslashes": "\\ \" ' ` $ {x} %s \\u0041 \\n",
    "like cypher": "'}) MATCH (n) DETACH DELETE n //",
    "fenced html and json": '```html\n<p>x</p>\n```\n\n```json\n{"a": {"b": 1}}\n```',
    "special tokens": "<|endoftext|> <|im_start|>system",
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_comes_back_as_it_was(client: httpx2.Client, case: str) -> None:
    text = TEXTS[case]
    stored(client, unit("a", text, actor=text[:40], provenance=[{"source": text[:40], "locator": "§ 1"}], task_id="t"))
    found = read(client, "a")
    assert found["content"] == text
    assert found["metadata"]["actor"] == text[:40]
    assert found["metadata"]["provenance"][0] == {"source": text[:40], "uri": None, "sha256": None, "locator": "§ 1", "method": None}
    assert client.get("/v1/units").json()["units"] == [found]
    answer = ask(client, task_id="t", model=GPT)
    assert [item["content"] for item in answer["units"]] == [text]
    assert write(client, found).json()["unchanged"] == 1


ARGUMENTS: dict[str, Any] = {
    "nested": {"a": {"b": {"c": [1, [2, [3, {"d": None}]]]}}},
    "empty": {"map": {}, "list": [], "text": "", "null": None, "yes": True, "no": False},
    "numbers": {"big": 2**63 - 1, "small": -(2**63), "unsigned": 2**64 - 1, "float": 1.5, "tiny": 5e-324, "large": 1.7976931348623157e308},
    "zeros": {"zero": 0, "float": 0.0, "minus": -0.0},
    "texts": {"nul": "a\x00b", "control": "\x07\x1b[31m", "rtl": "שלום", "emoji": "👨‍👩‍👧‍👦", "end": "\uffff"},
    "keys": {"": 1, " ": 2, "a.b": 3, "$where": 4, "ключ": 5, "\U0001f600": 6},
    "html and json": {"query": "<b>x</b>", "body": '{"x": [1]}'},
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_of_a_call_come_back_as_they_were(client: httpx2.Client, case: str) -> None:
    tool = {"name": "search", "call_id": "call-1", "arguments": ARGUMENTS[case]}
    stored(client, unit("a", "Searched.", "decision", tool=tool, task_id="t"))
    found = read(client, "a")["metadata"]["tool"]
    assert found == tool
    # 1 and 1.0 and true are equal in Python and not in JSON.
    assert repr(found["arguments"]) == repr(tool["arguments"])
    assert ids(ask(client, task_id="t", model=GPT)["units"]) == ["a"]


TIMES = [
    "0001-01-01T00:00:00Z",
    "0001-01-01T18:00:00.000001+18:00",
    "1582-10-10T12:00:00Z",
    "1883-11-18T12:03:58-05:00",
    "1969-12-31T23:59:59.999999Z",
    "1970-01-01T00:00:00+00:00",
    "2016-12-31T23:59:59Z",
    "2026-03-04T08:06:07.123456-03:00",
    "2026-03-04T08:06:07.1+05:45",
    "2026-03-04T08:06:07.000001+14:00",
    "2026-03-29T02:30:00+01:00",
    "9999-12-31T05:59:59.999999-18:00",
    "9999-12-31T23:59:59.999999Z",
]


def test_times_keep_their_offset_and_microseconds_and_sort(client: httpx2.Client) -> None:
    stored(client, *[unit(f"u{n:02}", timestamp=time, task_id="t", task_step=1) for n, time in enumerate(TIMES)])
    for n, time in enumerate(TIMES):
        found, wanted = datetime.fromisoformat(read(client, f"u{n:02}")["metadata"]["timestamp"]), datetime.fromisoformat(time)
        assert (found, found.utcoffset()) == (wanted, wanted.utcoffset())
    order = [f"u{n:02}" for n in sorted(range(len(TIMES)), key=lambda n: (datetime.fromisoformat(TIMES[n]), n), reverse=True)]
    assert listed(client) == order
    assert listed(client, task_id="t", limit=3) == order
    assert listed(client, session_id="session-1", limit=4) == order
    assert ids(ask(client, task_id="t", strategy="recency")["units"]) != []
    assert ids(ask(client, session_id="session-1", model=GPT)["units"])[0] == order[0]


IDS = [
    "a/b",
    "a//b",
    "/",
    "//",
    "a#b",
    "a?b=c",
    "a%20b",
    "%",
    "%2F",
    "..",
    ".",
    "a..b/../c",
    "ü",
    "e\u0301",
    "漢字",
    "👩🏽",
    "a:b;c,d",
    "!",
    "~",
    '"',
    "'",
    "\\",
    "lineage",
    "a/lineage",
    "x" * 128,
    "\U0001f600" * 128,
    "A",
    "a",
]


def test_any_visible_id_can_be_written_read_and_walked_from(client: httpx2.Client) -> None:
    stored(client, *[unit(f"{name}", f"Unit {n}.", task_id=name) for n, name in enumerate(IDS)])
    stored(client, *[unit(f"after-{n}", relations=[edge(name)]) for n, name in enumerate(IDS)])
    for n, name in enumerate(IDS):
        address = "/v1/units/" + quote(name, safe="").replace(".", "%2E")
        answer = client.get(address)
        assert (answer.status_code, answer.json().get("content")) == (200, f"Unit {n}."), name
        assert ids(client.get(f"{address}/lineage", params={"direction": "after"}).json()["units"]) == [name, f"after-{n}"]
        assert listed(client, task_id=name) == [name]
    assert len(listed(client)) == 2 * len(IDS)


def test_names_that_begin_alike_are_kept_apart(client: httpx2.Client) -> None:
    names = ["t", "t!", "t0", "t-1", "t1", "tt", "T", "t\u0301"]
    stored(client, *[unit(f"u-{name}", task_id=name, session_id=name) for name in names])
    of_all_sessions(client)
    for name in names:
        assert listed(client, task_id=name) == [f"u-{name}"]
        assert listed(client, session_id=name) == [f"u-{name}"]
        assert ids(ask(client, task_id=name)["units"]) == [f"u-{name}"]
        assert ids(ask(client, session_id=name)["units"]) == [f"u-{name}"]


def test_everything_a_unit_can_say_comes_back(client: httpx2.Client, tenant: str) -> None:
    whole = unit(
        "whole",
        "Seen.",
        relations=[edge("a", "causation"), edge("a", "provenance"), edge("b", "dependency"), edge("b", "supersession")],
        labels=["pii", "área"],
        trust="evidence_candidate",
        attachments=[{"uri": "s3://x/y.pdf", "media_type": "application/pdf", "sha256": "0f" * 32}],
        timestamp="2026-03-04T08:06:07Z",
        actor="Ada",
        session_id="other-session",
        task_id="t",
        task_step=7,
        epistemic_status="contested",
        provenance=["a book"],
        relevance_score=0.25,
        tier="warm",
        tool={"name": "look", "call_id": None, "arguments": None},
    )
    client.headers["Lastro-Model"] = "gpt-5.2"
    stored(client, unit("a"), unit("b", trust="evidence_candidate"), whole)
    found = read(of_all_sessions(client), "whole")
    owner, recorded = found.pop("owner"), found["metadata"].pop("recorded_at")
    assert found["metadata"].pop("source_erased") is False
    assert owner == {"tenant_id": tenant, "agent_id": "agent-1", "session_id": "other-session", "model": "gpt-5.2"}
    assert datetime.fromisoformat(recorded).utcoffset() is not None
    whole["metadata"] |= {
        "agent_id": "agent-1",
        "provenance": [{"source": "a book", "uri": None, "sha256": None, "locator": None, "method": None}],
    }
    found["relations"] = sorted(found["relations"], key=whole["relations"].index)
    assert found == {**whole, "scope": {"organization_id": None, "assessment_id": None}}
    assert {item["edge_type"] for item in lineage(client, "whole", depth=1)["relations"]} == {
        "causation",
        "provenance",
        "dependency",
        "supersession",
    }


def test_when_it_happened_and_when_it_was_recorded_are_two_facts(client: httpx2.Client) -> None:
    stored(client, unit("old", timestamp="1999-12-31T23:59:59Z"), unit("now"))
    old, now = read(client, "old")["metadata"], read(client, "now")["metadata"]
    assert old["timestamp"] == "1999-12-31T23:59:59Z"
    assert old["recorded_at"] == now["recorded_at"] == now["timestamp"]
    answer = write(client, {**unit("told"), "metadata": {"recorded_at": "1999-01-01T00:00:00Z"}})
    assert answer.status_code == 201
    assert read(client, "told")["metadata"]["recorded_at"] > "2020", "it is the service that says when it recorded"
