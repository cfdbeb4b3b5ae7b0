"""`lastro serve` as a process of its own, its HTTP door, and what it takes of the machine's memory."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from benchmarks.given_engine import HTTP_URI
from graph.engines.base import Address

START_S = 120
STOP_S = 40
IDLE_S = 20.0
"""After which a connection is not used again: the service closes one that nobody used for 30 s."""
LISTENS = re.compile(r"lastro listens on http://127\.0\.0\.1:(\d+)")
COMMAND = (sys.executable, "-c", "from app.cli.main import run; run()")
ON_GIVEN_ENGINE = (sys.executable, "-m", "benchmarks.given_engine")


class ServiceFailed(Exception):
    """The service did not start, or refused what a benchmark sent."""


@dataclass(frozen=True, slots=True)
class Served:
    """A running service."""

    port: int
    pid: int


def environment(**settings: str | None) -> dict[str, str]:
    """The environment of this process without any setting of Lastro, and then these. ``LASTRO_DATA`` here means the benchmarks' data.

    Answers are not kept unless it is said: what is measured is how long they take to be made. Nor are embeddings made unless it is said: they are
    off the path of a write, and would take the processors from what is measured.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LASTRO_") or name == "LASTRO_CACHE"}
    settings = {"answer_cache_ttl_s": "0", "embedder": "none", **settings}
    return kept | {f"LASTRO_{name.upper()}": value for name, value in settings.items() if value is not None}


def on_address(address: Address) -> dict[str, str]:
    """The environment of a service on a database that runs already, whichever it is."""
    return environment(
        engine="neo4j",
        neo4j_uri=address.uri,
        neo4j_user=address.user,
        neo4j_password=address.password,
        neo4j_database=address.database,
        bench_http_uri=address.http_uri,
    )


@contextmanager
def serving(folder: Path, surroundings: Mapping[str, str]) -> Generator[Served]:
    """`lastro serve` on a free port of 127.0.0.1, stopped by SIGTERM behind the block.

    Raises:
        ServiceFailed: it did not listen in time; the message holds its last lines.
    """
    told = folder / "serve.log"
    command = ON_GIVEN_ENGINE if HTTP_URI in surroundings else COMMAND
    with told.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 (our own words)
            [*command, "serve", "--port", "0", "--data", str(folder / "data")], env=dict(surroundings), stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + START_S
        while (found := LISTENS.search(told.read_text("utf-8", "replace"))) is None:
            if process.poll() is not None or time.monotonic() > until:
                raise ServiceFailed(f"`lastro serve` did not start: {told.read_text('utf-8', 'replace')[-800:]}")
            time.sleep(0.05)
        yield Served(int(found[1]), process.pid)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Door:
    """One kept connection to the service. The standard library's client, as it adds the least (about 0.2 ms a call)."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._used_at = time.monotonic()

    def post(self, path: str, body: bytes) -> bytes:
        """The answer's body.

        Raises:
            ServiceFailed: the service refused.
        """
        status, answer = self.asked(path, body)
        if status >= 300:  # noqa: PLR2004 (a success ends there)
            raise ServiceFailed(f"{path} answered {status}: {answer[:400].decode('utf-8', 'replace')}")
        return answer

    def asked(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer, whatever it is."""
        if time.monotonic() - self._used_at > IDLE_S:
            self._connection.close()  # and is opened again by the request
        self._connection.request("POST", path, body, self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        self._used_at = time.monotonic()
        return response.status, answer

    def context(self, query: Mapping[str, object]) -> dict[str, Any]:
        """The answer to a context query, parsed."""
        return orjson.loads(self.post("/v1/context", orjson.dumps(query)))

    def close(self) -> None:
        self._connection.close()


def make_key(folder: Path, surroundings: Mapping[str, str], tenant: str) -> str:
    """A key by `lastro keys create`, before the service owns the folder."""
    made = subprocess.run(  # noqa: S603 (as above)
        [*COMMAND, "keys", "create", "--tenant", tenant, "--agent", "bench", "--data", str(folder / "data"), "--json"],
        env=dict(surroundings),
        capture_output=True,
        check=False,
        timeout=START_S,
    )
    if made.returncode != 0:
        raise ServiceFailed(f"`lastro keys create` failed: {made.stderr[-400:].decode('utf-8', 'replace')}")
    return str(orjson.loads(made.stdout)["key"])


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of a process, MB (10^6 bytes): now, and the most so far."""

    now: float
    peak: float


def memory_of(pid: int) -> Memory:
    """From /proc: VmRSS and VmHWM."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines())

    def mb(name: str) -> float:
        return round(int(lines[name].split()[0]) * 1024 / 1e6, 1)

    return Memory(mb("VmRSS"), mb("VmHWM"))


def children_of(pid: int) -> list[int]:
    """Process ids of the children, those of every thread."""
    found = [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text("ascii").split()]
    return sorted(found)
