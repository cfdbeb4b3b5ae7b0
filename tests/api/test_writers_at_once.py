"""Several writers of one tenant at the same moment: they queue, nothing is lost, nothing is written twice, no cycle comes about (U4, U8, U9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

import httpx2
import pytest
from api.wire import ids, lineage, listed, read, write
from conftest import Service, edge, unit

WRITERS = 8
Send = Callable[[int, httpx2.Client], httpx2.Response]


@pytest.fixture
def at_once(service: Service, tenant: str) -> Iterator[Callable[[Send], list[httpx2.Response]]]:
    """Runs something in eight threads that start together, each with a client of its own and all with one key."""
    key = service.key(tenant)
    with ExitStack() as stack:
        clients = [stack.enter_context(service.client(key, session=f"session-{n}")) for n in range(WRITERS)]

        def run(work: Send) -> list[httpx2.Response]:
            barrier = Barrier(WRITERS)

            def one(n: int) -> httpx2.Response:
                barrier.wait(30)
                return work(n, clients[n])

            with ThreadPoolExecutor(WRITERS) as pool:
                return list(pool.map(one, range(WRITERS)))

        yield run


@pytest.fixture
def reader(service: Service, tenant: str) -> Iterator[httpx2.Client]:
    with service.client(service.key(tenant)) as found:
        yield found


def test_of_the_same_batch_one_is_written_and_the_others_are_unchanged(
    at_once: Callable[[Send], list[httpx2.Response]], reader: httpx2.Client
) -> None:
    batch = [unit(f"u{n}", session_id="s", relations=[edge(f"u{n - 1}")] if n else []) for n in range(40)]
    answers = at_once(lambda _, client: write(client, *batch))
    assert [answer.status_code for answer in answers] == [201] * WRITERS
    assert Counter(answer.json()["written"] for answer in answers) == {40: 1, 0: WRITERS - 1}
    assert len(listed(reader)) == 40
    assert len(lineage(reader, "u39", direction="before", depth=1)["relations"]) == 1


def test_of_an_id_with_different_contents_one_wins_and_the_others_are_told(
    at_once: Callable[[Send], list[httpx2.Response]], reader: httpx2.Client
) -> None:
    answers = at_once(lambda n, client: write(client, unit(f"own-{n}"), unit("same", f"As writer {n} saw it.")))
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: WRITERS - 1}
    winner = next(n for n, answer in enumerate(answers) if answer.status_code == 201)
    assert sorted(listed(reader)) == [f"own-{winner}", "same"], "the batches that lost left nothing behind"
    assert read(reader, "same")["content"] == f"As writer {winner} saw it."


def test_different_units_are_all_there(at_once: Callable[[Send], list[httpx2.Response]], reader: httpx2.Client) -> None:
    def work(n: int, client: httpx2.Client) -> httpx2.Response:
        answers = [write(client, *[unit(f"w{n}-{part}-{m}", task_id="t") for m in range(10)]) for part in range(5)]
        return max(answers, key=lambda answer: answer.status_code)

    assert [answer.status_code for answer in at_once(work)] == [201] * WRITERS
    assert len(set(listed(reader, task_id="t", limit=200))) == WRITERS * 50


def test_edges_that_would_lead_back_cannot_both_be_written(at_once: Callable[[Send], list[httpx2.Response]], reader: httpx2.Client) -> None:
    def work(n: int, client: httpx2.Client) -> httpx2.Response:
        here, there = ("a", "b") if n % 2 else ("b", "a")
        return write(client, unit(here, session_id="s", relations=[edge(there)]), unit(there, session_id="s"))

    statuses = Counter(answer.status_code for answer in at_once(work))
    assert statuses == {201: WRITERS // 2, 409: WRITERS // 2}, "one direction is stored, the other is a conflict"
    edges = [item for name in ("a", "b") for item in read(reader, name)["relations"]]
    assert len(edges) == 1


def test_a_target_that_is_still_being_written_exists_or_not_but_is_never_half_there(
    at_once: Callable[[Send], list[httpx2.Response]], reader: httpx2.Client
) -> None:
    def work(n: int, client: httpx2.Client) -> httpx2.Response:
        if n == 0:
            return write(client, unit("target"))
        return write(client, unit(f"points-{n}", relations=[edge("target")]))

    answers = at_once(work)
    assert answers[0].status_code == 201
    assert {answer.status_code for answer in answers[1:]} <= {201, 422}
    written = [f"points-{n}" for n, answer in enumerate(answers) if n and answer.status_code == 201]
    assert sorted(ids(lineage(reader, "target", direction="after")["units"])) == sorted(["target", *written])


def test_all_that_replace_one_unit_at_once_are_kept(at_once: Callable[[Send], list[httpx2.Response]], reader: httpx2.Client) -> None:
    assert write(reader, unit("old", task_id="t")).status_code == 201
    answers = at_once(lambda n, client: write(client, unit(f"new-{n}", f"Version {n}.", relations=[edge("old", "supersession")])))
    assert [answer.status_code for answer in answers] == [201] * WRITERS
    assert len(lineage(reader, "old", direction="after")["units"]) == 1 + WRITERS
