"""The database goes away or falls silent: requests are answered in time and truthfully, and the service recovers by itself (R3, O7, O9)."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from api.wire import ids, refused, send, stored, write
from conftest import Service, serve_in_thread, unit
from faults.proxy import Proxy, Way

from app.bootstrap import running
from app.settings import load_settings
from graph.engines.neo4j import GivenNeo4j
from graph.model.errors import DatabaseUnavailable

# The driver leaves a socket whose connecting was cancelled to the garbage collector (6.4.1, AsyncBoltSocket._connect_secure).
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
IDENTIFY_S = 2.0
"""What finding out who asks may take (graph/registry_store.py); the query's own deadline is read after it, and counts from the beginning."""
SLACK_S = 2.0
"""On a machine that does much else."""
MOST_REQUESTS = 4


@dataclass
class Away:
    """A service whose database can be taken away, and a client with a task of ten units."""

    service: Service
    proxy: Proxy
    client: httpx2.Client

    def context(self, **more: object) -> httpx2.Response:
        return send(self.client, "/v1/context", {"task_id": "t", "model": "gpt-5.2", **more})

    def ready(self) -> httpx2.Response:
        return self.client.get("/readyz")


@pytest.fixture(scope="module")
def behind_proxy(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Proxy]]:
    """A service of its own on the shared database, through a proxy."""
    address = service.run(service.lastro.engine.start())
    with Proxy(address) as proxy:
        given = GivenNeo4j(f"bolt://127.0.0.1:{proxy.port}", address.user, address.password, address.database)
        settings = load_settings(data=tmp_path_factory.mktemp("away"), max_concurrent_requests=MOST_REQUESTS)
        found, stop = serve_in_thread(service.engine_name, settings, lambda: running(settings, given, warm_up=False))
        yield found, proxy
        proxy.turn(Way.PASS)
        stop()


@pytest.fixture
def away(behind_proxy: tuple[Service, Proxy]) -> Iterator[Away]:
    found, proxy = behind_proxy
    with found.client(found.key(f"away-{uuid.uuid4().hex[:8]}"), session="session-1") as client:
        stored(client, *(unit(f"u{number}", f"Fact {number}.", task_id="t", task_step=number) for number in range(10)))
        assert send(client, "/v1/context", {"task_id": "t", "deadline_ms": 20_000}).status_code == 200
        yield Away(found, proxy, client)
        proxy.turn(Way.PASS)
        until(lambda: client.get("/readyz").status_code == 200)


def until(condition: Callable[[], bool], within_s: float = 20) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s, "it never came true"
        time.sleep(0.05)
    return time.monotonic() - began


def timed(ask: Callable[[], httpx2.Response]) -> tuple[httpx2.Response, float]:
    began = time.monotonic()
    answer = ask()
    return answer, time.monotonic() - began


def test_a_database_that_is_gone_is_503_until_it_is_back(away: Away) -> None:
    away.proxy.turn(Way.REFUSE)
    answer, took = timed(away.ready)
    assert answer.status_code == 503
    assert took < 3
    assert answer.headers["retry-after"]
    assert answer.json()["status"] == "not ready"
    assert answer.json()["problem"] == "database_unavailable"
    for ask in (
        lambda: away.client.get("/v1/units/u1"),
        lambda: write(away.client, unit("new")),
        away.context,
    ):
        answer, took = timed(ask)
        refused(answer, 503, "database_unavailable")
        assert int(answer.headers["retry-after"]) >= 1
        assert took < IDENTIFY_S + SLACK_S
    assert away.client.get("/healthz").status_code == 200
    away.proxy.turn(Way.PASS)
    assert until(lambda: away.ready().status_code == 200) < 5
    assert away.client.get("/v1/units/u1").status_code == 200
    assert away.client.get("/v1/units/new").status_code == 404, "what was refused is not there"
    assert len(away.context(deadline_ms=20_000).json()["units"]) == 10


def test_a_database_that_is_silent_hangs_nobody(away: Away) -> None:
    away.proxy.turn(Way.STALL)
    answer, took = timed(away.ready)
    assert answer.status_code == 503
    assert took < 1 + SLACK_S
    assert answer.json()["problem"] in {"deadline_exceeded", "database_unavailable"}
    for ask in (lambda: away.context(deadline_ms=100), lambda: away.client.get("/v1/units")):
        answer, took = timed(ask)
        assert answer.status_code in {503, 504}, answer.text
        assert "units" not in answer.json(), "never an empty answer"
        assert took < IDENTIFY_S + SLACK_S
    assert away.client.get("/healthz").status_code == 200
    away.proxy.turn(Way.PASS)
    assert until(lambda: away.ready().status_code == 200) < 5
    assert len(away.context(deadline_ms=20_000).json()["units"]) == 10


def test_a_batch_whose_connection_breaks_is_stored_whole_once(away: Away) -> None:
    """The gateway tries again by itself when the database is back soon enough."""
    batch = [unit(f"n{number}", f"More {number}.", task_id="more") for number in range(500)]
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(lambda: write(away.client, *batch))
        time.sleep(0.15)
        away.proxy.turn(Way.REFUSE)
        time.sleep(0.3)
        away.proxy.turn(Way.PASS)
        answer = sent.result(60)
    assert answer.status_code in {201, 503}, answer.text
    until(lambda: away.ready().status_code == 200)
    again = write(away.client, *batch)
    assert again.status_code == 201
    assert again.json()["written"] + again.json()["unchanged"] == 500
    assert again.json()["written"] in {0, 500}, "never half a batch"
    if answer.status_code == 201:
        assert again.json()["unchanged"] == 500, "what was acknowledged is there"
    page = away.client.get("/v1/units", params={"task_id": "more", "limit": "200"}).json()
    assert len(set(ids(page["units"]))) == 200


def test_too_many_requests_are_refused_at_once_while_probes_answer(away: Away) -> None:
    away.proxy.turn(Way.STALL)
    with ThreadPoolExecutor(MOST_REQUESTS) as pool, away.service.client("no-matter") as probing:
        started = threading.Barrier(MOST_REQUESTS + 1)

        def ask() -> httpx2.Response:
            with httpx2.Client(base_url=away.service.url, headers=away.client.headers, timeout=30) as own:
                started.wait(10)
                return own.get("/v1/units/u1")

        slow = [pool.submit(ask) for _ in range(MOST_REQUESTS)]
        started.wait(10)
        time.sleep(0.5)
        answer, took = timed(lambda: away.client.get("/v1/units/u1"))
        refused(answer, 503, "overloaded")
        assert answer.headers["retry-after"]
        assert took < 0.5
        assert probing.get("/healthz").status_code == 200
        assert probing.get("/readyz").status_code == 503
        assert all(item.result(30).status_code in {503, 504} for item in slow)
    away.proxy.turn(Way.PASS)
    until(lambda: away.ready().status_code == 200)
    assert away.client.get("/v1/units/u1").status_code == 200, "there is room again"


def test_a_service_does_not_start_without_its_database(tmp_path: Path, service: Service) -> None:
    async def start() -> None:
        settings = load_settings(data=tmp_path, startup_wait_s=1)
        async with running(settings, GivenNeo4j("bolt://127.0.0.1:9", "neo4j", "x"), warm_up=False):
            pytest.fail("it started")

    began = time.monotonic()
    with pytest.raises(DatabaseUnavailable):
        service.run(start())
    assert time.monotonic() - began < 1 + 2 + SLACK_S
