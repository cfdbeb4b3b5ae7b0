"""A statement of a search that does not end: an answer in time that says what is missing, or that there was none; never an empty one (R3)."""

from __future__ import annotations

from time import monotonic
from typing import Any

import httpx2
import pytest
from api.wire import ids, refused, send, stored
from conftest import Service, edge, unit
from security.leaks import mutated

DEADLINE_MS = 1_500
LATE_S = 2.5
"""By when an answer must be there, on a busy machine."""
SLEEP = "UNWIND range(1, 60000) AS slow_a UNWIND range(1, 60000) AS slow_b WITH slow_a * slow_b AS slow WHERE slow = -1 WITH count(slow) AS slept "


def sleeping(text: str) -> str:
    """The statement behind one that counts for minutes."""
    return SLEEP + text.replace("WITH collect(u) AS found\n", "WITH slept, collect(u) AS found\n", 1)


@pytest.fixture
def known(client: httpx2.Client, stranger: httpx2.Client) -> httpx2.Client:
    for who in (client, stranger):
        stored(
            who,
            unit("a", "The quibble of Zebediah Quux.", task_id="t", task_step=1),
            unit("b", "Beside it.", task_id="t", task_step=2, relations=[edge("a")]),
        )
    # Warm, so that what is late is late for its own sake.
    for query in (
        {"topic": "quibble"},
        {"topic": "quibble", "task_id": "t"},
        {"task_id": "t", "step": 2},
        {"task_id": "t", "step": 2, "strategy": "recency"},
    ):
        assert send(client, "/v1/context", {**query, "deadline_ms": 20_000}).status_code == 200
    return client


def timed(client: httpx2.Client, **query: Any) -> tuple[httpx2.Response, float]:
    began = monotonic()
    answer = send(client, "/v1/context", {"deadline_ms": DEADLINE_MS, **query})
    return answer, monotonic() - began


@pytest.mark.parametrize("statement", ["search/walk_entities", "search/read_units_by_session_place"])
def test_what_is_beside_may_be_late(service: Service, known: httpx2.Client, statement: str) -> None:
    with mutated(service, statement, sleeping):
        answer, took_s = timed(known, topic="quibble")
    assert took_s < LATE_S
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert ids(told["units"])[0] == "a"
    assert told["receipt"]["partial"] is True
    assert any("no time" in note for note in told["receipt"]["notes"])
    assert send(known, "/v1/context", {"topic": "quibble", "deadline_ms": DEADLINE_MS}).json()["receipt"]["cache"] == "miss"


def test_words_that_are_late_are_said_to_be(service: Service, known: httpx2.Client) -> None:
    with mutated(service, "search/search_units_by_text", sleeping):
        answer, took_s = timed(known, topic="quibble")
        assert took_s < LATE_S
        refused(answer, 504, "deadline_exceeded")
        answer, took_s = timed(known, topic="quibble", task_id="t")
    assert took_s < LATE_S
    told = answer.json()
    assert set(ids(told["units"])) == {"a", "b"}
    assert told["receipt"]["partial"] or told["receipt"]["fallback"]


def test_a_walk_that_is_late_gives_way(service: Service, known: httpx2.Client) -> None:
    with mutated(
        service, "context/traverse_units", lambda text: SLEEP + text.replace("WITH collect({unit", "WITH slept, collect({unit", 1)
    ):
        answer, took_s = timed(known, task_id="t", step=2)
    assert took_s < LATE_S
    told = answer.json()
    assert set(ids(told["units"])) == {"a", "b"}
    assert (told["receipt"]["strategy"], told["receipt"]["fallback"]) == ("recency", True)
