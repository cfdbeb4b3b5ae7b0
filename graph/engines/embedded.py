"""The embedded engine: ArcadeDB in a child process on loopback, for one machine and first steps.

A process of its own, so that neither its memory nor its crash is the service's. The service holds it by a leash, the child's standard
input: when the service goes, however it goes, the child stops cleanly by itself. When the child goes, a supervisor brings it back on
the same ports, so that the driver finds it again.

Everything lies in one folder: ``password``, ``owner.lock``, ``engine.log``, ``databases/``, and what ArcadeDB keeps beside them
(``config/``, ``log/``, ``backups/``). One process owns a folder at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import time
from asyncio.subprocess import Process
from collections import deque
from pathlib import Path
from typing import Any, Final

from graph.engines.base import Address
from graph.engines.sql import SqlDoor
from graph.model.errors import EngineFailure, EngineFolderInUse, EngineNotInstalled, EngineStartFailed

USER: Final = "root"
DATABASE: Final = "neo4j"
LOG_LIMIT_BYTES: Final = 4_000_000
LOGS_KEPT: Final = 20
STOP_PATIENCE_S: Final = 22.0
"""The child ends a stop that hangs after 20 s itself; only then is it told by signals."""
SIGNAL_PATIENCE_S: Final = 3.0
RESTARTS_PER_MINUTE: Final = 5
FIRST_BACKOFF_S: Final = 0.5

# By file path, because then it runs from a checkout and from an installed wheel alike, from any folder, and loads no module of the
# service. -P keeps the script's folder off the import path, where our own `neo4j.py` would pass for the driver.
CHILD: Final = (sys.executable, "-P", "-X", "utf8", str(Path(__file__).with_name("embedded_child.py")))

log = logging.getLogger(__name__)


class EmbeddedEngine:
    """ArcadeDB on ``folder``, with a heap of ``heap_mb`` MiB; ``start_timeout_s`` seconds for each start. Lives in one event loop."""

    name = "embedded"

    def __init__(self, folder: Path, heap_mb: int = 512, start_timeout_s: float = 60) -> None:
        self._folder = folder.absolute()
        self._heap_mb = heap_mb
        self._start_timeout_s = start_timeout_s
        self._turn = asyncio.Lock()
        self._child: Process | None = None
        self._ports = (0, 0)
        self._address: Address | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._steady = asyncio.Event()
        self._came_back = False
        self._restarts: deque[float] = deque(maxlen=RESTARTS_PER_MINUTE)
        self._sql: SqlDoor | None = None

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.returncode is None

    @property
    def child_pid(self) -> int | None:
        """Process id of the child, for people."""
        return self._child.pid if self._child is not None and self.alive else None

    async def start(self) -> Address:
        """Start the child and wait until Bolt answers.

        Raises ``EngineFolderInUse``, ``EngineNotInstalled`` or ``EngineStartFailed``.
        """
        async with self._turn:
            if self._address is not None and self._supervisor is not None and not self._supervisor.done():
                return self._address
            await self._close_sql()
            prepare(self._folder)
            self._child, self._ports = await self._launch((0, 0))
            bolt, http = self._ports
            self._address = Address(
                uri=f"bolt://127.0.0.1:{bolt}",
                user=USER,
                password=(self._folder / "password").read_text("ascii").strip(),
                database=DATABASE,
                http_uri=f"http://127.0.0.1:{http}",
            )
            self._restarts.clear()
            self._came_back = False
            self._steady.set()
            self._supervisor = asyncio.create_task(self._supervise(self._child), name="embedded engine supervisor")
            return self._address

    async def stop(self) -> None:
        """Stop the child cleanly, or by signals when it does not follow within 22 seconds."""
        async with self._turn:
            if self._supervisor is not None:
                self._supervisor.cancel()
                await asyncio.wait([self._supervisor])
            child, self._child, self._supervisor, self._address = self._child, None, None, None
            self._steady.set()
            if child is not None:
                await end(child)
            await self._close_sql()

    async def restarted(self) -> bool:
        if self._address is not None:
            if not self.alive and self._supervisor is not None and not self._supervisor.done():
                self._steady.clear()  # it has ended, and its supervisor has not been told yet
            await self._steady.wait()
        came_back, self._came_back = self._came_back, False
        return came_back

    async def sql(self, command: str, deadline_s: float = 30.0) -> list[dict[str, object]]:
        """Rows of one SQL command by HTTP, all of them or an error.

        Raises ``EngineFailure`` when the engine is not started, refuses the command, or is not done within ``deadline_s`` seconds; the
        command then stops, as its connection closes.
        """
        if self._address is None or self._address.http_uri is None:
            raise EngineFailure("The embedded engine is not started.")
        if self._sql is None:
            self._sql = SqlDoor(self._address)
        return await self._sql.run(command, deadline_s)

    async def _close_sql(self) -> None:
        if self._sql is not None:
            await self._sql.close()
            self._sql = None

    async def _supervise(self, child: Process) -> None:
        while True:
            status = await child.wait()
            self._steady.clear()
            try:
                await end(child)  # closes its pipes
                log.warning("The embedded engine ended with status %s.", status)
                again = await self._relaunch()
            finally:
                self._steady.set()
            if again is None:
                log.error("The embedded engine ended too often and stays down.")
                return
            child = again

    async def _relaunch(self) -> Process | None:
        """The child again, on its ports; None when that was tried too often."""
        while len(self._restarts) < RESTARTS_PER_MINUTE or time.monotonic() - self._restarts[0] > 60:  # noqa: PLR2004 - a minute
            recent = sum(time.monotonic() - at < 60 for at in self._restarts)  # noqa: PLR2004 - a minute
            self._restarts.append(time.monotonic())
            await asyncio.sleep(FIRST_BACKOFF_S * 2**recent)
            try:
                self._child, _ = await self._launch(self._ports)
            except EngineFailure as failure:
                log.warning("The embedded engine did not come back: %s", failure.code)
                continue
            self._came_back = True
            log.warning("The embedded engine is back.")
            return self._child
        return None

    async def _launch(self, ports: tuple[int, int]) -> tuple[Process, tuple[int, int]]:
        """A child that is ready, and its (Bolt, HTTP) ports; 0 asks for any free one."""
        bolt, http = ports
        try:
            prune_logs(self._folder)
            with open_log(self._folder) as output:
                child = await asyncio.create_subprocess_exec(
                    *CHILD,
                    str(self._folder),
                    f"--heap-mb={self._heap_mb}",
                    f"--bolt-port={bolt}",
                    f"--http-port={http}",
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=output,
                    cwd=self._folder,  # ArcadeDB writes ./log
                    start_new_session=True,  # Ctrl-C is for the service, which then lets go of the leash
                    creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same, on Windows
                )
        except OSError as refused:
            raise EngineStartFailed(f"The engine's process cannot be started: {refused.strerror}.") from refused
        said: dict[str, Any] = {}
        try:
            async with asyncio.timeout(self._start_timeout_s):
                said = await first_line(child)
        except TimeoutError:
            raise self._start_failed(f"It was not ready within {self._start_timeout_s:g} s.") from None
        finally:  # also when the caller was cancelled
            if "ready" not in said:
                await end(child)
        if "ready" in said:
            return child, (int(said["bolt_port"]), int(said["http_port"]))
        match said.get("error"):
            case "folder_in_use":
                raise EngineFolderInUse(f"Another process (pid {said['pid']}) owns this data folder.")
            case "not_installed":
                raise EngineNotInstalled(f"{EngineNotInstalled.message} ({said['reason']})")
            case _:
                raise self._start_failed(f"Its process ended with status {child.returncode}.")

    def _start_failed(self, why: str) -> EngineStartFailed:
        return EngineStartFailed(f"{EngineStartFailed.message} {why}", hint=f"Read {self._folder / 'engine.log'}.")


def prepare(folder: Path) -> None:
    """Make the folder, or take an empty or private one, or one of ours. Raises ``EngineStartFailed`` for any other.

    Others' files are not hidden behind mode 0700 just because somebody said ``--data /tmp``.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        ours = (folder / "owner.lock").exists() or not any(folder.iterdir())
        private = os.name == "nt" or folder.stat().st_mode & 0o077 == 0
        if ours and not private:
            folder.chmod(0o700)
    except OSError as refused:
        raise EngineStartFailed(f"The data folder cannot be used: {refused.strerror}.", hint="Choose another with --data.") from refused
    if not (ours or private):
        raise EngineStartFailed(
            "The data folder holds other files and is open to others.", hint="Choose a new or empty folder with --data."
        )


def open_log(folder: Path) -> Any:
    """``engine.log`` for appending, the last one put aside when it has grown over 4 MB. Raises ``OSError``."""
    file = folder / "engine.log"
    if file.exists() and file.stat().st_size > LOG_LIMIT_BYTES:
        file.replace(folder / "engine.log.1")
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def prune_logs(folder: Path) -> None:
    """ArcadeDB begins new log files at each start and keeps them all; the newest stay."""
    logs = sorted((folder / "log").glob("*.log*"), key=lambda file: file.stat().st_mtime)
    for old in logs[:-LOGS_KEPT]:
        old.unlink(missing_ok=True)


async def first_line(child: Process) -> dict[str, Any]:
    """What the child says first: an empty object when it ended without a word."""
    assert child.stdout is not None
    line = await child.stdout.readline()
    said: dict[str, Any] = json.loads(line) if line else {}
    return said


async def end(child: Process) -> None:
    """Drop the leash and wait; then SIGTERM, which it takes the same way; then SIGKILL."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    for patience_s, insist in ((STOP_PATIENCE_S, child.terminate), (SIGNAL_PATIENCE_S, child.kill)):
        try:
            async with asyncio.timeout(patience_s):
                await child.wait()
                break
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                insist()
    await child.wait()
    await child.stdout.read()  # to its end, so that the pipe is closed with the process
    with contextlib.suppress(ConnectionError):
        await child.stdin.wait_closed()
