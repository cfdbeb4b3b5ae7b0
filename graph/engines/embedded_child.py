"""The child process that holds the embedded engine: one ArcadeDB server in its JVM, on loopback, for one data folder.

It is run by file path (see ``embedded``), so it imports nothing of Lastro. It speaks JSON lines on its standard output, each once:

- ``{"ready": true, "bolt_port": 40001, "http_port": 21007}`` when Bolt answers,
- ``{"error": "folder_in_use" | "not_installed" | "start_failed", "reason": …, "pid": …}`` when it will not.

Its standard input is its leash: at end of file, however the service died, or at a line ``stop``, it stops the server and exits.
Everything else that it, the JVM or ArcadeDB prints goes to standard error, which is ``engine.log``.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import random
import secrets
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

DATABASE = "neo4j"
"""Name of the only database; Bolt's default too, as on Neo4j Community."""
COMMAND_TIMEOUT_MS = 30_000
"""Last line of defence: ArcadeDB itself ends a statement after this. It does not cut index builds (tried)."""
STOP_LIMIT_S = 20.0
"""A stop that takes longer is ended; the write-ahead log makes that as safe as a crash."""
ORPHAN_PATIENCE_S = 10.0
"""How long to wait for an owner that is stopping."""
LIVE_OWNER_PATIENCE_S = 1.0
"""How long an owner may look alive: one whose service was killed a moment ago has not noticed yet."""
HTTP_PORTS = (20_000, 29_900)
"""Below Linux's ephemeral ports. ArcadeDB takes the first free one of a range and says which; port 0 it cannot tell back."""
RANGE_LENGTH = 100
_LOCK_BYTE = 1 << 30  # Windows locks bytes, and a locked byte cannot be read: lock one far behind the text

State = Literal["running", "stopping"]


class Refusal(Exception):
    """Why the child will not serve: a code for the parent and a reason for people."""

    def __init__(self, code: str, reason: str, pid: int | None = None) -> None:
        super().__init__(reason)
        self.line: dict[str, object] = {"error": code, "reason": reason, "pid": pid}


class Ownership:
    """The exclusive lock on ``owner.lock``; the kernel drops it with the process, so no crash leaves it behind.

    The text of the file (pid and state) serves messages and the patience of a successor, never the decision.
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor = os.open(folder / "owner.lock", os.O_RDWR | os.O_CREAT, 0o600)
        self._owned = False

    def take(self, leash_dropped: threading.Event) -> None:
        """Lock it, waiting for an owner that is stopping. Raises ``Refusal`` when somebody keeps it or the leash drops."""
        began = time.monotonic()
        while not self._try_lock():
            waited = time.monotonic() - began
            state, pid = self._read()
            patience = ORPHAN_PATIENCE_S if state == "stopping" else LIVE_OWNER_PATIENCE_S
            if waited > patience:
                raise Refusal("folder_in_use", f"process {pid or 'unknown'} is {state or 'there'}", pid)
            if leash_dropped.wait(0.05):
                raise Refusal("start_failed", "told to stop before it started")
        self._owned = True
        self.say("running")

    def say(self, state: State) -> None:
        if not self._owned:
            return  # the text is the owner's
        text = json.dumps({"pid": os.getpid(), "state": state}).encode() + b"\n"
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, text)
        os.ftruncate(self._descriptor, len(text))

    def _read(self) -> tuple[str | None, int | None]:
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        try:
            said: Any = json.loads(os.read(self._descriptor, 200))
        except ValueError:  # it is being written
            return None, None
        return str(said["state"]), int(said["pid"])

    def _try_lock(self) -> bool:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 - exists on Windows only

            os.lseek(self._descriptor, _LOCK_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(self._descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                return False
            return True
        import fcntl  # noqa: PLC0415 - does not exist on Windows

        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def password_of(folder: Path) -> str:
    """The root password of this folder's store, made at the first start. Called by the owner only, so nobody races.

    ArcadeDB keeps a hash in its own file of users and takes a password only when it makes that file. When ours is gone, theirs is
    worthless: it is removed, and both are made again. Whoever may do that in this folder may read the data in it anyway.
    """
    file = folder / "password"
    known = file.read_text("ascii").strip() if file.exists() else ""
    if known:
        return known
    (folder / "config" / "server-users.jsonl").unlink(missing_ok=True)
    fresh = secrets.token_urlsafe(32)
    draft = folder / "password.new"
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
        out.write(fresh)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(file)
    return fresh


def load_package() -> Any:
    """The package ``arcadedb_embedded`` with its own Java runtime. Raises ``Refusal`` when it is missing or not for this platform."""
    try:
        package = importlib.import_module("arcadedb_embedded")
        java = importlib.import_module("arcadedb_embedded.jvm")
    except ImportError as missing:  # also what a binary for another platform or an older glibc raises
        raise Refusal("not_installed", str(missing)) from missing
    try:
        java.get_bundled_jre_lib_path()
    except package.ArcadeDBError as incomplete:
        raise Refusal("not_installed", str(incomplete)) from incomplete
    return package


def start_server(package: Any, folder: Path, heap_mb: int, bolt_port: int, http_port: int) -> Any:
    """A running server on ``folder`` with its database open. Port 0 means any free one. Raises ``ArcadeDBError``."""
    importlib.import_module("arcadedb_embedded.jvm").start_jvm(heap_size=f"{heap_mb}m")
    ignore_terminal()  # again: the JVM has just put its own handlers in place
    lowest = random.randrange(*HTTP_PORTS)  # noqa: S311 - spreads neighbours over the range, keeps no secret
    server = package.create_server(
        root_path=str(folder),
        root_password=password_of(folder),
        config={
            "host": "127.0.0.1",
            "mode": "production",  # errors by HTTP then name their class and repeat no content
            "http_port": str(http_port) if http_port else f"{lowest}-{lowest + RANGE_LENGTH}",
            "server_plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "bolt_host": "127.0.0.1",
            "bolt_port": bolt_port,
            "bolt_defaultDatabase": DATABASE,
            "txWalFlush": 2,  # a commit is answered after its log is on the disk
        },
    )
    server.start()
    database = server.create_database(DATABASE)  # opens it when it exists
    database.command("sql", f"ALTER DATABASE `arcadedb.command.timeout` {COMMAND_TIMEOUT_MS}")
    return server


def ports_of(server: Any) -> tuple[int, int]:
    """(Bolt, HTTP) as they were bound."""
    java = server._java_server  # noqa: SLF001 - the wrapper tells the ports that were asked for, not those that were got
    bolt = next(int(plugin.getPort()) for plugin in java.getPlugins() if "BoltProtocolPlugin" in str(plugin.getClass().getName()))
    return bolt, int(java.getHttpServer().getPort())


def shake_hands(bolt_port: int) -> None:
    """Ask for Bolt 5.4 to 5.0 as a driver would. Raises ``Refusal`` when nobody, or something else, answers."""
    hello = b"\x60\x60\xb0\x17" + b"\x00\x04\x04\x05" + b"\x00\x00\x04\x04" + bytes(8)
    try:
        with socket.create_connection(("127.0.0.1", bolt_port), timeout=10) as connection:
            connection.sendall(hello)
            answer = connection.recv(4)
    except OSError as silent:
        raise Refusal("start_failed", f"Bolt does not answer on port {bolt_port}") from silent
    if answer in (b"", bytes(4)):
        raise Refusal("start_failed", f"what answers on port {bolt_port} is not Bolt")


def ignore_terminal() -> None:
    """Ctrl-C and a closed terminal reach every process of the group; the service decides what they mean, by the leash."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


class Leash:
    """Says when to stop: standard input ended or said so, or somebody sent SIGTERM."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self.dropped = threading.Event()

    def hold(self) -> None:
        """Start listening to standard input."""
        threading.Thread(target=self._listen, name="leash", daemon=True).start()

    def _listen(self) -> None:
        for line in iter(sys.stdin.readline, ""):
            if line.strip() == "stop":
                break
        self.drop()

    def drop(self, *_signal: object) -> None:
        """Stop, within ``STOP_LIMIT_S``."""
        if self.dropped.is_set():
            return
        self.dropped.set()
        limit = threading.Timer(STOP_LIMIT_S, os._exit, (3,))
        limit.daemon = True
        limit.start()
        self._ownership.say("stopping")


def serve(say: Callable[[dict[str, object]], None], folder: Path, heap_mb: int, bolt_port: int, http_port: int) -> None:
    """Own the folder, serve it until the leash drops, stop cleanly. Raises ``Refusal`` when it cannot."""
    ownership = Ownership(folder)
    leash = Leash(ownership)
    leash.hold()
    ownership.take(leash.dropped)  # before anything of the store is touched
    package = load_package()
    if leash.dropped.is_set():  # the last moment at which leaving is quick
        raise Refusal("start_failed", "told to stop before it started")
    try:
        server = start_server(package, folder, heap_mb, bolt_port, http_port)
    except package.ArcadeDBError as failed:
        traceback.print_exception(failed)
        raise Refusal("start_failed", "ArcadeDB did not start") from failed
    bolt, http = ports_of(server)
    shake_hands(bolt)
    signal.signal(signal.SIGTERM, leash.drop)
    say({"ready": True, "bolt_port": bolt, "http_port": http})
    leash.dropped.wait()
    server.stop()


def end_for_sure(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An error that nobody expected: without this, the JVM's threads would keep the process, and the folder, for ever."""
    traceback.print_exception(kind, error, trace)
    os._exit(1)


def main() -> None:
    """Read the arguments, keep standard output for the protocol, serve."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--heap-mb", type=int, required=True)
    options.add_argument("--bolt-port", type=int, default=0)
    options.add_argument("--http-port", type=int, default=0)
    given = options.parse_args()
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # ArcadeDB prints to standard output
    sys.excepthook = end_for_sure
    ignore_terminal()
    os.umask(0o077)

    def say(line: dict[str, object]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the service died meanwhile; the leash tells
            channel.write(json.dumps(line) + "\n")
            channel.flush()

    status = 0
    try:
        serve(say, given.folder, given.heap_mb, given.bolt_port, given.http_port)
    except Refusal as refusal:
        sys.stderr.write(f"{refusal.line}\n")
        say(refusal.line)
        status = 2
    sys.stderr.flush()
    os._exit(status)  # the store is closed; leaving through the interpreter would wait for threads of a JVM that failed half-way


if __name__ == "__main__":
    main()
