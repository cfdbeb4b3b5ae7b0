"""`lastro serve` as a process of its own on a folder, and ways to end it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

LASTRO = Path(sys.executable).with_name("lastro")
LISTENS = re.compile(r"listens on (http://\S+)")
START_S = 120


def until(condition: Callable[[], bool], within_s: float = 60, why: str = "it never came true") -> float:
    """Seconds until it held."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s, why
        time.sleep(0.02)
    return time.monotonic() - began


def gone(pid: int) -> bool:
    """Whether a process has ended; a corpse that nobody buried counts."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


@dataclass
class Serving:
    """The service on a folder. ``key`` is an agent's, ``admin_key`` an admin's of the same tenant."""

    folder: Path
    key: str = ""
    admin_key: str = ""
    url: str = ""
    starts: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LASTRO_")}
        return {**kept, "LASTRO_DATA": str(self.folder), "LASTRO_EMBEDDED_HEAP_MB": "256", "LASTRO_EMBEDDER": "none"}

    def make_key(self) -> None:
        """With the command that makes the first key of a store, before any service runs."""
        self.key = self._made("agent-1", "agent")
        self.admin_key = self._made("boss", "admin")

    def _made(self, agent: str, role: str) -> str:
        made = subprocess.run(
            [LASTRO, "keys", "create", "--tenant", "acme", "--agent", agent, "--role", role, "--json"],
            env=self.environment(),
            capture_output=True,
            check=True,
            timeout=START_S,
        )
        return str(json.loads(made.stdout)["key"])

    def start(self) -> float:
        """Start it, unless it runs; seconds until it listened."""
        if self.process is not None and self.process.poll() is None:
            return 0
        self.starts += 1
        log = self.folder.parent / f"serve-{self.starts}.log"
        with log.open("wb") as output:
            self.process = subprocess.Popen([LASTRO, "serve", "--port", "0"], env=self.environment(), stdout=output, stderr=output)

        def listens() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, log.read_text()
            found = LISTENS.search(log.read_text())
            self.url = found[1] if found is not None else ""
            return found is not None

        return until(listens, START_S)

    def client(self, timeout_s: float = 60) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.key}", "Lastro-Session": "session-1"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=timeout_s)

    @property
    def engine_pid(self) -> int:
        """The child that holds the store."""
        return int(json.loads((self.folder / "owner.lock").read_text())["pid"])

    def signal(self, what: signal.Signals) -> int:
        """Send it and wait for the end; the exit status."""
        assert self.process is not None
        self.process.send_signal(what)
        return self.process.wait(60)
