"""What tests over HTTP say again and again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, cast

import httpx2
import pytest
import tiktoken
import tiktoken_ext.openai_public as public  # pyright: ignore[reportMissingTypeStubs]
from conftest import edge, unit

from adapters import ranks

GPT, CLAUDE = "gpt-5.2", "claude-opus-4-8"
PATIENT_MS = 60_000
"""A deadline that a busy machine keeps; tests of the deadline set their own."""


def write(client: httpx2.Client, *units: dict[str, Any], **more: Any) -> httpx2.Response:
    """POST a batch. Lone surrogates are sent as escapes, which is how they reach a service."""
    return send(client, "/v1/units", {"units": list(units), **more})


def send(client: httpx2.Client, path: str, body: Any) -> httpx2.Response:
    return client.post(path, content=json.dumps(body).encode(), headers={"Content-Type": "application/json"})


def stored(client: httpx2.Client, *units: dict[str, Any]) -> None:
    """Write a batch that must be new."""
    answer = write(client, *units)
    assert answer.status_code == 201, answer.text
    assert answer.json()["written"] == len(units), answer.text


def of_all_sessions(client: httpx2.Client) -> httpx2.Client:
    """The same agent without a session of its own: it sees all of its sessions."""
    client.headers.pop("Lastro-Session")
    return client


def read(client: httpx2.Client, unit_id: str) -> dict[str, Any]:
    answer = client.get(f"/v1/units/{unit_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def ids(found: Iterable[dict[str, Any]]) -> list[str]:
    return [item["id"] for item in found]


def listed(client: httpx2.Client, **asked: str | int) -> list[str]:
    """Ids of every page, in order."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        params = {name: str(value) for name, value in asked.items()}
        answer = client.get("/v1/units", params=params if cursor is None else {**params, "cursor": cursor})
        assert answer.status_code == 200, answer.text
        found += ids(answer.json()["units"])
        cursor = answer.json()["next"]
        if cursor is None:
            return found


def rows_of(client: httpx2.Client, path: str, **asked: str) -> list[dict[str, Any]]:
    """Rows of every page of an address that counts something."""
    found: list[dict[str, Any]] = []
    more: dict[str, str] = {}
    while True:
        answer = client.get(path, params={**asked, **more})
        assert answer.status_code == 200, answer.text
        found += answer.json()["rows"]
        if answer.json()["next"] is None:
            return found
        more = {"cursor": answer.json()["next"]}


def inquire(client: httpx2.Client, **query: Any) -> httpx2.Response:
    """Ask for a context with a deadline that a busy machine keeps."""
    return send(client, "/v1/context", {"deadline_ms": PATIENT_MS, **query})


def ask(client: httpx2.Client, **query: Any) -> dict[str, Any]:
    """A context that must be answered."""
    answer = inquire(client, **query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def lineage(client: httpx2.Client, unit_id: str, **params: str | int) -> dict[str, Any]:
    answer = client.get(f"/v1/units/{unit_id}/lineage", params={name: str(value) for name, value in params.items()})
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer: httpx2.Response, status: int, code: str, **where: Any) -> dict[str, Any]:
    """The problem, which must have this status and code and name at least this place."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    told: dict[str, Any] = answer.json()
    assert (told["code"], told["status"], told["type"]) == (code, status, f"urn:lastro:problem:{code}"), answer.text
    assert told["title"], "a problem says what is wrong"
    assert told["hint"], "a problem says what to do"
    assert told["trace_id"] == answer.headers["lastro-trace"]
    named: dict[str, Any] = told.get("where", {})
    assert {name: named.get(name) for name in where} == where, answer.text
    return told


def call(unit_id: str, step: int, name: str = "look", **more: Any) -> dict[str, Any]:
    """A decision that calls a tool."""
    tool = {"name": name, "call_id": f"call-{unit_id}", "arguments": {"at": f"place {step}"}}
    return unit(unit_id, f"Called {name} for step {step}.", "decision", task_step=step, tool=tool, **more)


def result(unit_id: str, of: str, step: int, content: str, **more: Any) -> dict[str, Any]:
    """What the tool returned."""
    return unit(
        unit_id, content, "tool_result", task_step=step, tool={"name": "look", "call_id": f"call-{of}"}, relations=[edge(of)], **more
    )


@cache
def o200k() -> tiktoken.Encoding:
    """The encoding by tiktoken itself, from ranks on this machine, so that a recount shares no code with the service's counting."""

    def load(address: str, expected_hash: str) -> dict[bytes, int]:
        contents = ranks.QuicktokSource().read(ranks.RankFile(address, expected_hash))
        assert contents is not None
        return ranks.parse(contents)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public, "load_tiktoken_bpe", load)
        return tiktoken.Encoding(**cast("Any", public.ENCODING_CONSTRUCTORS["o200k_base"])())


def tokens_of_chat(payload: dict[str, Any]) -> int:
    """Tokens of a Chat Completions payload of GPT-5 as OpenAI counts it: 2 for the answer, 3 a message, and every role and text."""
    messages = cast("list[dict[str, str]]", payload["messages"])
    return 2 + sum(3 + sum(len(o200k().encode_ordinary(value)) for value in message.values()) for message in messages)
