"""A real Neo4j Community without Docker, for tests: its Maven artifacts, run by the Java of this machine (POSIX).

The artifacts are fetched once by ``mvn``, from wherever it is set up to fetch, into ``$LASTRO_CACHE`` or ``~/.cache/lastro``.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import neo4j
from neo4j.exceptions import DriverError, Neo4jError

from graph.engines.base import Address
from graph.engines.java import find_java
from graph.model.errors import EngineFailure, EngineNotInstalled, EngineStartFailed

COPY_JARS: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
POM: Final = Path(__file__).with_name("maven") / "pom.xml"
USER: Final = "neo4j"
FETCH_LIMIT_S: Final = 900
START_LIMIT_S: Final = 180
STOP_LIMIT_S: Final = 60
NO_MAVEN: Final = "`mvn` is missing, which fetches Neo4j for tests."
NO_MAVEN_HINT: Final = "Install Apache Maven, or give a Neo4j by URI."
OPENED: Final = ("java.nio", "java.io", "sun.nio.ch")
STARTED: Final = " Started."
PORT_TRIES: Final = 3
PORT_TAKEN: Final = "PortBindException"

# Java's leash: when our end of standard input closes, by stop() or by our death, the shell ends Java. Without it a killed test run
# would leave a server of a gigabyte behind. The shell has not reaped Java when it signals, so the pid cannot be another's.
LEASH: Final = """
exec 3<&0
"$@" </dev/null 3<&- & java=$!
( cat <&3 >/dev/null; kill "$java" ) 2>/dev/null & leash=$!
wait "$java"; status=$?
kill "$leash" 2>/dev/null
exit "$status"
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of Neo4j: what to fetch and how to run it."""

    version: str
    javas: tuple[int, ...]
    """Major versions that run it, the preferred first."""
    main: str
    flags: tuple[str, ...]


LINES: Final = {
    "5.26": Line(
        "5.26.29", (17, 21), "org.neo4j.server.CommunityEntryPoint", tuple(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED)
    ),
    "newest": Line(
        "2026.08.1",
        (25, 21),
        "org.neo4j.server.Neo4jCommunity",
        (
            *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in (*OPENED, "java.util.concurrent")),
            "-Dorg.neo4j.shaded.lucene9.vectorization.upperJavaFeatureVersion=25",
            "--enable-native-access=ALL-UNNAMED",
        ),
    ),
}

CONFIGURATION: Final = """\
server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
server.memory.pagecache.size=256m
dbms.usage_report.enabled=false
"""


class LocalNeo4j:
    """Neo4j Community of a line on a free loopback port, its data in ``folder`` or, without one, in a temporary folder.

    Not bound to an event loop: a test suite may start it in one and stop it in another.
    """

    name = "local-neo4j"

    def __init__(self, line: Literal["5.26", "newest"], folder: Path | None = None) -> None:
        self._line = LINES[line]
        self._folder = folder
        self._temporary: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._address: Address | None = None

    @property
    def alive(self) -> bool:
        return self._address is not None and self._process is not None and self._process.poll() is None

    async def start(self) -> Address:
        """Fetch what is missing, start, and wait until Bolt answers.

        Raises ``EngineNotInstalled`` when Java or ``mvn`` is missing, ``EngineStartFailed`` with the last lines of the log otherwise.
        """
        if self._address is not None and self.alive:
            return self._address
        await self.stop()
        java = find_java(f"Neo4j {self._line.version}", self._line.javas)
        jars = await asyncio.to_thread(fetched_jars, self._line.version)
        try:
            home, password = await asyncio.to_thread(self._home, java, jars)
            address = self._address = await self._serving(java, jars, home, password)
        finally:  # also when the caller was cancelled
            if self._address is None:
                await self.stop()
        return address

    async def stop(self) -> None:
        process, self._process, self._address = self._process, None, None
        if process is not None:
            await asyncio.to_thread(end, process, at_once=self._folder is None)  # data that is thrown away needs no checkpoint
        if self._temporary is not None:
            await asyncio.to_thread(shutil.rmtree, self._temporary, ignore_errors=True)
            self._temporary = None

    async def restarted(self) -> bool:
        """False: when it dies, a test has failed."""
        return False

    async def sql(self, command: str, deadline_s: float = 30.0) -> list[dict[str, object]]:  # noqa: ARG002 - the protocol's form
        raise EngineFailure("Neo4j has no SQL.", hint="Use a statement from cypher/; SQL is for the embedded engine.")

    def _home(self, java: Path, jars: Path) -> tuple[Path, str]:
        """The home folder and the password, both from the last time when ``folder`` was used before."""
        if self._folder is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="lastro-neo4j-"))
        home = self._folder or self._temporary
        assert home is not None
        (home / "conf").mkdir(parents=True, exist_ok=True)
        (home / "conf" / "neo4j.conf").write_text(CONFIGURATION.format(port=0), "utf-8")
        file = home / "password"
        if not file.exists():
            draft = home / "password.new"
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_urlsafe(24), "ascii")
            set_first_password(java, jars, home, draft)
            draft.replace(file)
        return home, file.read_text("ascii")

    async def _serving(self, java: Path, jars: Path, home: Path, password: str) -> Address:
        """Neo4j does not say which port it got for 0, so one is chosen, and another when somebody took it meanwhile."""
        console = home / "console.log"
        tries_left = PORT_TRIES
        while True:
            tries_left -= 1
            port = free_port()
            (home / "conf" / "neo4j.conf").write_text(CONFIGURATION.format(port=port), "utf-8")
            process = self._process = launch(self._line, java, jars, home, console)
            address = Address(uri=f"bolt://127.0.0.1:{port}", user=USER, password=password, database=None)
            until = time.monotonic() + START_LIMIT_S
            while time.monotonic() < until and process.poll() is None:
                if STARTED in text_of(console) and await answers(address):
                    return address
                await asyncio.sleep(0.2)
            said = text_of(console)
            status = process.poll()
            await asyncio.to_thread(end, process, at_once=True)
            if not (tries_left and PORT_TAKEN in said):
                why = f"was not ready within {START_LIMIT_S} s" if status is None else f"ended with status {status}"
                last = " | ".join(said.splitlines()[-5:])
                raise EngineStartFailed(f"Neo4j {self._line.version} {why}.", hint=f"Its last lines: {last}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launch(line: Line, java: Path, jars: Path, home: Path, console: Path) -> subprocess.Popen[bytes]:
    """Java on its leash, its output in ``console``."""
    shell = shutil.which("sh")
    if shell is None:
        raise EngineNotInstalled("A local Neo4j needs a POSIX shell.")
    run = [str(java), "-Xms256m", "-Xmx768m", *line.flags, "-cp", f"{jars}/*", line.main]
    run += [f"--home-dir={home}", f"--config-dir={home / 'conf'}", "--console-mode"]
    with console.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - our own words and the Java that was found
            [shell, "-c", LEASH, "neo4j", *run], stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=home, start_new_session=True
        )


def end(process: subprocess.Popen[bytes], *, at_once: bool) -> None:
    """Let go of the leash and wait (a clean stop takes 10 s); kill the group, the shell and its Java, ``at_once`` or when they stay."""
    assert process.stdin is not None
    if at_once and process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.stdin.close()
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def text_of(file: Path) -> str:
    return file.read_text("utf-8", "replace")


async def answers(address: Address) -> bool:
    # The driver leaves its **config without a type.
    async with neo4j.AsyncGraphDatabase.driver(address.uri, auth=(address.user, address.password)) as driver:  # pyright: ignore[reportUnknownMemberType]
        try:
            await driver.verify_connectivity()  # pyright: ignore[reportUnknownMemberType]
        except (DriverError, Neo4jError):
            return False
    return True


def set_first_password(java: Path, jars: Path, home: Path, password: Path) -> None:
    """Tell an unborn database its password, from the file ``password``: an argument could be read by every user of the machine."""
    environment = {**os.environ, "NEO4J_HOME": str(home), "NEO4J_CONF": str(home / "conf")}
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED]
    tell = [str(java), "-Xmx256m", *opened, "-cp", f"{jars}/*", "org.neo4j.cli.AdminTool", "dbms", "set-initial-password", f"@{password}"]
    told = subprocess.run(tell, env=environment, capture_output=True, check=False, timeout=START_LIMIT_S)  # noqa: S603 - as above
    if told.returncode != 0:
        raise EngineStartFailed("The first password of Neo4j could not be set.", hint=told.stderr.decode("utf-8", "replace")[-400:])


def missing_for(line: Literal["5.26", "newest"]) -> list[str]:
    """What this machine lacks to run the line, each as a sentence; empty when nothing does. Starts and fetches nothing."""
    missing: list[str] = []
    try:
        find_java(f"Neo4j {LINES[line].version}", LINES[line].javas)
    except EngineNotInstalled as lacking:
        missing.append(f"{lacking.message} {lacking.hint}")
    if shutil.which("mvn") is None and not (kept_at(LINES[line].version) / "complete").exists():
        missing.append(f"{NO_MAVEN} {NO_MAVEN_HINT}")
    return missing


def kept_at(version: str) -> Path:
    cache = Path(os.environ.get("LASTRO_CACHE") or Path.home() / ".cache" / "lastro")
    return cache / f"neo4j-{version}"


def fetched_jars(version: str) -> Path:
    """The folder of Neo4j's jars, fetched at first. Raises ``EngineNotInstalled`` without ``mvn`` or when it cannot fetch them."""
    kept = kept_at(version)
    if not (kept / "complete").exists():
        maven = shutil.which("mvn")
        if maven is None:
            raise EngineNotInstalled(
                "`mvn` is missing, which fetches Neo4j for tests.", hint="Install Apache Maven, or give a Neo4j by URI."
            )
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f"neo4j-{version}-", dir=kept.parent))
        try:
            fetch(maven, version, draft)
            (draft / "complete").touch()
            keep(draft, kept)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return kept / "lib"


def fetch(maven: str, version: str, into: Path) -> None:
    shutil.copy(POM, into / "pom.xml")
    ask = [maven, "-q", "-B", "-f", str(into / "pom.xml"), f"-Dneo4j.version={version}", COPY_JARS]
    ask += ["-DincludeScope=runtime", f"-DoutputDirectory={into / 'lib'}"]
    try:
        done = subprocess.run(ask, capture_output=True, check=False, timeout=FETCH_LIMIT_S)  # noqa: S603 - our own words
    except subprocess.TimeoutExpired:
        raise EngineNotInstalled(f"Neo4j {version} could not be fetched within {FETCH_LIMIT_S} s.") from None
    if done.returncode != 0:
        raise EngineNotInstalled(f"`mvn` could not fetch Neo4j {version}.", hint=done.stdout.decode("utf-8", "replace")[-400:])


def keep(draft: Path, kept: Path) -> None:
    """Put ``draft`` in place at once; another process may have been faster, then its jars are as good."""
    try:
        draft.rename(kept)
    except OSError:
        if not (kept / "complete").exists():
            raise
