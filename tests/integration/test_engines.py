"""Engines as processes: what survives which death, who may open a folder, and what is said when it cannot be."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import neo4j
import pytest
from neo4j.exceptions import DriverError, Neo4jError

from graph.engines import embedded, java, local_server
from graph.engines.base import Address, Engine
from graph.engines.embedded import EmbeddedEngine
from graph.engines.local_server import LocalNeo4j
from graph.engines.neo4j import GivenNeo4j
from graph.model.errors import EngineFailure, EngineFolderInUse, EngineNotInstalled, EngineStartFailed

pytestmark = pytest.mark.anyio
CHECKOUT = Path(__file__).parents[2]
KIDS = 5

SERVICE = """
import asyncio, json, sys
from pathlib import Path
from graph.engines.embedded import EmbeddedEngine

async def main():
    engine = EmbeddedEngine(Path(sys.argv[1]))
    try:
        await engine.start()
        print(json.dumps({"child": engine.child_pid}), flush=True)
        await asyncio.sleep(600)
    finally:
        await engine.stop()
        print("stopped", flush=True)

asyncio.run(main())
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def started(folder: Path) -> AsyncGenerator[tuple[EmbeddedEngine, Address]]:
    engine = EmbeddedEngine(folder, heap_mb=256)
    try:
        yield engine, await engine.start()
    finally:
        await engine.stop()


def driver_to(address: Address) -> neo4j.AsyncDriver:
    return neo4j.AsyncGraphDatabase.driver(address.uri, auth=(address.user, address.password))  # pyright: ignore[reportUnknownMemberType]


async def ask(driver: neo4j.AsyncDriver, statement: str, **parameters: object) -> list[dict[str, Any]]:
    """One explicit transaction, as the service writes: on ArcadeDB a statement on its own commits piece by piece, and may end half."""
    async with driver.session(database="neo4j") as session, await session.begin_transaction() as transaction:  # pyright: ignore[reportUnknownMemberType]
        result = await transaction.run(statement, parameters)  # pyright: ignore[reportArgumentType]
        rows = await result.data()
        await transaction.commit()
        return rows


async def until(condition: Callable[[], bool], within_s: float = 30) -> float:
    """Seconds until it held."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s, "it never came true"
        await asyncio.sleep(0.02)
    return time.monotonic() - began


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def clean_stops(folder: Path) -> int:
    return (folder / "engine.log").read_text().count("ArcadeDB Server is down")


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # A container without an init leaves an orphan's corpse unburied.
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def visible_of(pid: int) -> str:
    """Arguments and environment of a process."""
    return "".join(Path(f"/proc/{pid}/{part}").read_text("utf-8", "replace") for part in ("cmdline", "environ"))


@contextmanager
def service_process(folder: Path) -> Generator[tuple[subprocess.Popen[str], int]]:
    """A service of its own process group, and the pid of its engine's process."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVICE, str(folder)],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdout is not None
            child = int(json.loads(process.stdout.readline())["child"])
            yield process, child
        finally:
            if process.poll() is None:
                process.kill()


async def test_a_folder_is_private_and_keeps_its_data(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with started(folder) as (engine, address):
        assert engine.alive
        assert await engine.start() is address
        assert address.password not in repr(address)
        async with driver_to(address) as driver:
            await ask(driver, "CREATE (:Kept {id: 'a', text: 'água'})")
        assert await engine.sql("SELECT id, text FROM Kept") == [{"id": "a", "text": "água"}]
        with pytest.raises(EngineFailure, match="refused"):
            await engine.sql("SELEC nothing")
        for file, mode in ((folder, 0o700), (folder / "password", 0o600), (folder / "owner.lock", 0o600), (folder / "engine.log", 0o600)):
            assert mode_of(file) == mode, file
        assert engine.child_pid is not None
        assert address.password not in visible_of(engine.child_pid)
    assert not engine.alive
    await engine.stop()
    (folder / "password").unlink()  # both halves of the login are then made again; the data is another matter
    async with started(folder) as (engine, again), driver_to(again) as driver:
        assert again.password != address.password
        assert await ask(driver, "MATCH (k:Kept) RETURN k.text AS text") == [{"text": "água"}]
        assert not await engine.restarted()
    assert address.password not in (folder / "engine.log").read_text()


async def test_it_serves_this_machine_and_one_owner_only(tmp_path: Path) -> None:
    async with started(tmp_path / "data") as (first, address):
        assert address.http_uri is not None
        for uri in (address.uri, address.http_uri):
            port = int(uri.rsplit(":", 1)[1])
            socket.create_connection(("127.0.0.1", port), timeout=2).close()
            with pytest.raises(OSError, match=r".*"):  # a listener on every interface would answer here too
                socket.create_connection(("127.0.0.2", port), timeout=2)
        began = time.monotonic()
        with pytest.raises(EngineFolderInUse, match=str(first.child_pid)):
            await EmbeddedEngine(tmp_path / "data").start()
        assert time.monotonic() - began < 5
        async with driver_to(address) as driver:
            assert await ask(driver, "RETURN 1 AS one") == [{"one": 1}]


async def test_what_was_acknowledged_survives_the_death_of_the_engine(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    dead = asyncio.Event()

    async def write(driver: neo4j.AsyncDriver, writer: int) -> None:
        number = 0
        while not dead.is_set():
            number += 1
            unit = f"{writer}-{number}"
            try:
                await ask(
                    driver,
                    "CREATE (a:Unit {id: $id}) WITH a UNWIND range(1, $kids) AS k CREATE (a)-[:HAS]->(:Kid {of: $id})",
                    id=unit,
                    kids=KIDS,
                )
            except (DriverError, Neo4jError):
                return
            acknowledged.append(unit)

    async with started(tmp_path / "data") as (engine, address), driver_to(address) as driver:
        writers = [asyncio.create_task(write(driver, number)) for number in range(4)]
        await until(lambda: len(acknowledged) >= 200)
        assert engine.child_pid is not None
        os.kill(engine.child_pid, signal.SIGKILL)
        killed = time.monotonic()
        await until(lambda: not engine.alive)
        dead.set()
        assert await engine.restarted()
        assert not await engine.restarted(), "a restart is told once"
        assert engine.alive
        assert time.monotonic() - killed < 30
        await asyncio.gather(*writers)
        # The same driver finds it on the same port.
        found = await ask(driver, "MATCH (a:Unit) OPTIONAL MATCH (a)-[:HAS]->(k:Kid {of: a.id}) RETURN a.id AS id, count(k) AS kids")
        kids = {row["id"]: row["kids"] for row in found}
        assert set(acknowledged) <= set(kids)
        assert set(kids.values()) == {KIDS}
        assert await ask(driver, "MATCH (k:Kid) RETURN count(k) AS n") == [{"n": KIDS * len(kids)}]
        assert len(kids) - len(acknowledged) <= len(writers), "only a write in flight may be there unacknowledged"
        assert await engine.sql("SELECT count(*) AS n FROM Unit") == [{"n": len(kids)}]


async def test_the_engine_does_not_outlive_a_killed_service(tmp_path: Path) -> None:
    with service_process(tmp_path / "data") as (service, child):
        os.kill(child, signal.SIGSTOP)  # an orphan that takes its time, so that the next owner has to wait for it
        service.kill()
        service.wait()
        asyncio.get_running_loop().call_later(0.3, os.kill, child, signal.SIGCONT)
        async with started(tmp_path / "data") as (engine, _):
            assert engine.child_pid != child
            assert gone(child)
            assert clean_stops(tmp_path / "data") == 1


async def test_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    with service_process(tmp_path / "data") as (service, child):
        os.kill(child, signal.SIGINT)  # even when it reaches the child, it is the service that decides
        await asyncio.sleep(0.2)
        assert not gone(child)
        os.killpg(service.pid, signal.SIGINT)
        assert service.stdout is not None
        assert await asyncio.to_thread(service.stdout.read) == "stopped\n"
        await until(lambda: gone(child), within_s=5)
    assert clean_stops(tmp_path / "data") == 1


async def test_an_engine_that_keeps_dying_stays_down_until_it_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with started(tmp_path / "data") as (engine, _):
        monkeypatch.setattr(embedded, "FIRST_BACKOFF_S", 0.01)
        with monkeypatch.context() as broken:
            broken.setattr(embedded, "CHILD", (sys.executable, "-c", "raise SystemExit(7)"))
            assert engine.child_pid is not None
            os.kill(engine.child_pid, signal.SIGKILL)
            await until(lambda: not engine.alive)
            assert not await engine.restarted()
            assert not engine.alive
        address = await engine.start()
        assert engine.alive
        async with driver_to(address) as driver:
            assert await ask(driver, "RETURN 1 AS one") == [{"one": 1}]


async def test_a_start_that_takes_too_long_fails_and_leaves_nothing(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data", start_timeout_s=0.3)
    with pytest.raises(EngineStartFailed, match="not ready within") as failed:
        await engine.start()
    assert "engine.log" in failed.value.hint
    assert not engine.alive
    await engine.stop()


async def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a platform without a wheel meets: the import fails. Here because a module of that name comes first on the path."""
    (tmp_path / "arcadedb_embedded.py").write_text("raise ModuleNotFoundError(\"No module named 'arcadedb_embedded'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EngineNotInstalled, match="No module named 'arcadedb_embedded'"):
        await EmbeddedEngine(tmp_path / "data").start()


async def test_a_folder_of_others_is_left_alone(shared_folder: Path) -> None:
    with pytest.raises(EngineStartFailed, match="other files"):
        await EmbeddedEngine(shared_folder).start()
    assert names_in(shared_folder) == ["thesis.txt"]
    assert mode_of(shared_folder) == 0o755
    with pytest.raises(EngineStartFailed, match="cannot be used"):
        await EmbeddedEngine(shared_folder / "thesis.txt" / "data").start()


@pytest.fixture
def shared_folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    (tmp_path / "thesis.txt").write_text("mine")
    return tmp_path


async def test_a_grown_log_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "LOG_LIMIT_BYTES", 10)
    for text in (b"first, and long enough", b"second"):
        with embedded.open_log(tmp_path) as log:
            log.write(text)
    assert (tmp_path / "engine.log").read_bytes() == b"second"
    assert (tmp_path / "engine.log.1").read_bytes() == b"first, and long enough"


async def test_a_given_neo4j_is_only_an_address() -> None:
    engine: Engine = GivenNeo4j("neo4j+s://graph.example", "lastro", "secret", "context")
    assert await engine.start() == Address("neo4j+s://graph.example", "lastro", "secret", "context")
    await engine.stop()
    assert engine.alive
    assert not await engine.restarted()
    with pytest.raises(EngineFailure, match="no SQL"):
        await engine.sql("SELECT 1")


def fake_java(home: Path, says: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def javas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, Path]:
    """A machine with Java 17 on the path and 17, 21, 25 and a broken one beside it."""
    system = tmp_path / "jvm"
    found = {major: fake_java(system / f"jdk-{major}", f'openjdk version "{major}.0.3" 2026-04-21') for major in (17, 21, 25)}
    fake_java(system / "broken", "Segmentation fault")
    (system / "openjdk-17").mkdir()
    monkeypatch.setattr(java, "SYSTEM_FOLDERS", (system, tmp_path / "nowhere"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{found[17].parent}:/usr/bin:/bin")
    return found


async def test_each_line_of_neo4j_gets_its_java(javas: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert java.find_java("Neo4j 5.26", local_server.LINES["5.26"].javas) == javas[17]
    assert java.find_java("Neo4j 2026", local_server.LINES["newest"].javas) == javas[25]
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "mine", 'java version "25" 2025-09-16').parents[1]))
    assert java.find_java("Neo4j 2026", (25, 21)) == tmp_path / "mine" / "bin" / "java", "JAVA_HOME comes first"
    assert java.find_java("Neo4j 5.26", (17, 21)) == javas[17]
    with pytest.raises(EngineNotInstalled, match="Neo4j 9 needs Java 30 or 31; found: 17, 21, 25"):
        java.find_java("Neo4j 9", (31, 30))


async def test_what_a_local_neo4j_lacks_is_named(javas: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LASTRO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(javas[17].parent))
    assert local_server.missing_for("5.26") == [f"{local_server.NO_MAVEN} {local_server.NO_MAVEN_HINT}"]
    engine = LocalNeo4j("5.26")
    with pytest.raises(EngineNotInstalled, match="mvn"):
        await engine.start()
    await engine.stop()
    (tmp_path / "cache" / "neo4j-5.26.29").mkdir(parents=True)
    (tmp_path / "cache" / "neo4j-5.26.29" / "complete").touch()
    assert local_server.missing_for("5.26") == []
