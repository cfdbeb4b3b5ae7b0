"""Kill -9 in the middle of a bulk import, of the engine and of the service: what was acknowledged is there, nothing is half (U9, O9)."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import httpx2
import orjson
import pytest
from api.wire import ids
from conftest import edge, unit
from faults.serving import Serving, gone, until

from app.client import LastroClient
from app.importing import BATCH_UNITS, Checkpoint, ImportReport, Progress, import_file
from graph.model.errors import Unavailable

BATCHES = 8
UNITS = BATCHES * BATCH_UNITS
KILL_AFTER = 3
RETRY_S = 0.3


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """One store for the tests of this file; whoever finds the service dead starts it again."""
    found = Serving(tmp_path_factory.mktemp("crashes") / "data")
    found.make_key()
    yield found
    if found.process is not None and found.process.poll() is None:
        found.signal(signal.SIGTERM)


def bulk(folder: Path, name: str) -> Path:
    """A file of batches: each unit is caused by the one before and needs the first of its batch; a batch is a task."""
    lines: list[bytes] = []
    for number in range(UNITS):
        batch, place = divmod(number, BATCH_UNITS)
        relations = [edge(f"{name}-{number - 1}")] if number else []
        relations += [edge(f"{name}-{batch * BATCH_UNITS}", "dependency")] if place else []
        lines.append(orjson.dumps(unit(f"{name}-{number}", f"Fact {number}.", task_id=f"{name}-{batch}", relations=relations)))
    file = folder / f"{name}.ndjson"
    file.write_bytes(b"\n".join(lines) + b"\n")
    return file


def stored_of(client: httpx2.Client, name: str, batch: int) -> tuple[int, int]:
    """Units and edges of a batch that are there."""
    units: dict[str, int] = {}
    params = {"task_id": f"{name}-{batch}", "limit": "200"}
    while True:
        page = client.get("/v1/units", params=params).raise_for_status().json()
        units |= {item["id"]: len(item["relations"]) for item in page["units"]}
        if page["next"] is None:
            return len(units), sum(units.values())
        params["cursor"] = page["next"]


def whole(batch: int) -> tuple[int, int]:
    return BATCH_UNITS, 2 * BATCH_UNITS - 1 - (batch == 0)


def acknowledged_are_whole_and_none_is_half(client: httpx2.Client, name: str, acknowledged: int) -> None:
    found = [stored_of(client, name, batch) for batch in range(BATCHES)]
    for batch, told in enumerate(found):
        assert told == whole(batch) or (batch >= acknowledged and told == (0, 0)), (batch, told, acknowledged)
    assert sum(told == (0, 0) for told in found) >= BATCHES - acknowledged - 1, "only the batch under way may be there unacknowledged"


def counters_are_what_is_stored(serving: Serving) -> None:
    """A unit and what counts it are stored by one commit, so no crash comes between them (T3)."""
    with httpx2.Client(base_url=serving.url, headers={"Authorization": f"Bearer {serving.admin_key}"}, timeout=60) as admin:
        (told,) = admin.get("/v1/usage", params={"subject_type": "tenant"}).raise_for_status().json()["rows"]
        units = size = 0
        params = {"limit": "200"}
        while True:
            page = admin.get("/v1/units", params=params).raise_for_status().json()
            units += len(page["units"])
            size += sum(len(item["content"].encode()) for item in page["units"])
            if page["next"] is None:
                break
            params["cursor"] = page["next"]
    assert (told["units"], told["bytes"]) == (units, size)


@dataclass
class Import:
    """An import that tells when it has come far enough."""

    serving: Serving
    file: Path
    checkpoint: Checkpoint
    far_enough: threading.Event = field(default_factory=threading.Event)
    acknowledged: int = 0
    failures: list[Unavailable] = field(default_factory=list[Unavailable])

    def run(self) -> ImportReport:
        async def work() -> ImportReport:
            async with LastroClient(self.serving.url, self.serving.key, session_id="session-1") as client:
                return await import_file(client, self.file, checkpoint=self.checkpoint, on_progress=self.note)

        return asyncio.run(work())

    def note(self, progress: Progress) -> None:
        self.acknowledged = max(self.acknowledged, progress.units // BATCH_UNITS)
        if self.acknowledged >= KILL_AFTER:
            self.far_enough.set()

    def run_until_it_breaks(self) -> None:
        try:
            self.run()
        except Unavailable as error:
            self.failures.append(error)

    def finish(self) -> ImportReport:
        """As a person would: the same command again, until it is through."""
        ends = time.monotonic() + 90
        while True:
            try:
                return self.run()
            except Unavailable:
                if time.monotonic() > ends:
                    raise
                time.sleep(RETRY_S)


class Onlooker:
    """Asks for readiness and for a unit again and again, as a load balancer and an agent do, and keeps what was said."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.seen: list[tuple[str, httpx2.Response, float]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)

    def _look(self) -> None:
        with self._serving.client(timeout_s=15) as client:
            while not self._over.wait(0.05):
                for path in ("/readyz", "/v1/units/seed"):
                    began = time.monotonic()
                    self.seen.append((path, client.get(path), time.monotonic() - began))


def test_sigterm_answers_what_is_under_way(serving: Serving) -> None:
    serving.start()
    body = orjson.dumps({"units": [unit(f"last-{number}", task_id="last") for number in range(200)]})
    address = urlsplit(serving.url)
    child = serving.engine_pid
    assert serving.process is not None
    with socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=30) as connection:
        head = (
            f"POST /v1/units HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {serving.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body[:1000])
        time.sleep(0.3)
        serving.process.terminate()
        time.sleep(0.5)
        with pytest.raises(OSError, match=r".*"):  # nobody new is let in
            socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=2).close()
        connection.sendall(body[1000:])
        answer = b""
        while block := connection.recv(65_536):
            answer += block
    assert answer.startswith(b"HTTP/1.1 201"), answer[:200]
    assert serving.process.wait(30) in {0, -signal.SIGTERM}
    assert gone(child), "the engine stops with the service"
    serving.start()
    with serving.client() as client:
        page = client.get("/v1/units", params={"task_id": "last", "limit": "200"}).json()
        assert len(ids(page["units"])) == 200


def test_the_engine_is_killed(serving: Serving, tmp_path: Path) -> None:
    serving.start()
    file = bulk(tmp_path, "engine")
    importing = Import(serving, file, Checkpoint(tmp_path, file, "engine"))
    with serving.client() as client:
        assert client.post("/v1/units", json={"units": [unit("seed")]}).status_code == 201
        thread = threading.Thread(target=importing.run_until_it_breaks)
        with Onlooker(serving) as onlooker:
            thread.start()
            assert importing.far_enough.wait(120)
            time.sleep(0.05)  # into the next batch
            killed = serving.engine_pid
            os.kill(killed, signal.SIGKILL)
            until(lambda: gone(killed))
            at_death = len(onlooker.seen)
            until(lambda: any(path == "/readyz" and said.status_code == 503 for path, said, _ in onlooker.seen), 20, "readyz kept silent")
            took = until(lambda: client.get("/readyz").status_code == 200, 60, "the service did not recover by itself")
            assert serving.engine_pid != killed
            thread.join(90)
            assert not thread.is_alive(), "the import hangs"
            until(
                lambda: any(path == "/readyz" and said.status_code == 200 for path, said, _ in onlooker.seen[-2:]), 20, "it saw no recovery"
            )
        for path, said, seconds in onlooker.seen:
            assert said.status_code in {200, 503, 504}, f"{path}: {said.status_code} {said.text}"
            assert seconds < 6, f"{path} took {seconds:.1f} s"
            if said.status_code == 503:
                assert int(said.headers["retry-after"]) >= 1
                assert said.json().get("code", said.json().get("problem")) in {
                    "database_unavailable",
                    "engine_stopped",
                    "deadline_exceeded",
                }
        meanwhile = [said.status_code for path, said, _ in onlooker.seen[at_death:] if path == "/readyz"]
        recovered = meanwhile.index(200, meanwhile.index(503))
        assert set(meanwhile[:recovered]) <= {200, 503}
        assert 200 not in meanwhile[meanwhile.index(503) : recovered]
        assert took < 60
        acknowledged_are_whole_and_none_is_half(client, "engine", importing.acknowledged)
        counters_are_what_is_stored(serving)
        report = importing.finish()
        assert report.written + report.unchanged > 0
        acknowledged_are_whole_and_none_is_half(client, "engine", BATCHES)
        assert client.get("/v1/units/seed").status_code == 200


def test_the_service_is_killed(serving: Serving, tmp_path: Path) -> None:
    serving.start()
    file = bulk(tmp_path, "service")
    importing = Import(serving, file, Checkpoint(tmp_path, file, "service"))
    thread = threading.Thread(target=importing.run_until_it_breaks)
    thread.start()
    assert importing.far_enough.wait(120)
    time.sleep(0.05)
    child = serving.engine_pid
    assert serving.signal(signal.SIGKILL) == -signal.SIGKILL
    thread.join(60)
    assert not thread.is_alive()
    assert importing.failures, "the import says that the service went away"
    reached = importing.checkpoint.read()
    assert reached > 0
    serving.start()  # at once, while the orphan may still hold the folder
    assert gone(child), "the engine outlives its service"
    with serving.client() as client:
        assert client.get("/readyz").status_code == 200
        acknowledged = importing.acknowledged
        acknowledged_are_whole_and_none_is_half(client, "service", acknowledged)
        counters_are_what_is_stored(serving)
        report = importing.finish()
        assert report.resumed_at == reached, "it goes on, and does not begin anew"
        assert report.unchanged in {0, BATCH_UNITS}
        assert report.written + report.unchanged == UNITS - acknowledged * BATCH_UNITS
        acknowledged_are_whole_and_none_is_half(client, "service", BATCHES)
        assert importing.checkpoint.read() == 0
