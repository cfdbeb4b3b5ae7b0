"""A real Neo4j Community without Docker, for tests: its Maven artifacts, run by the Java of this machine (POSIX).

The artifacts are fetched once by ``mvn``, from wherever it is set up to fetch, into ``$LASTRO_CACHE`` or ``~/.cache/lastro``.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import neo4j
from neo4j.exceptions import DriverError, Neo4jError

from graph.engines.base import Address
from graph.model.errors import EngineFailure, EngineNotInstalled, EngineStartFailed

COPY_JARS: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
POM: Final = Path(__file__).with_name("maven") / "pom.xml"
USER: Final = "neo4j"
FETCH_LIMIT_S: Final = 900
START_LIMIT_S: Final = 180
STOP_LIMIT_S: Final = 60
OPENED: Final = ("java.nio", "java.io", "sun.nio.ch")
BOLT_LINE: Final = re.compile(r"Bolt enabled on 127\.0\.0\.1:(\d+)")

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
server.bolt.listen_address=127.0.0.1:0
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
        java = find_java(self._line)
        jars = await asyncio.to_thread(fetched_jars, self._line.version)
        try:
            home, password = await asyncio.to_thread(self._home, java, jars)
            self._process = launch(self._line, java, jars, home)
            address = self._address = await self._answering(self._process, home / "console.log", password)
        finally:  # also when the caller was cancelled
            if self._address is None:
                await self.stop()
        return address

    async def stop(self) -> None:
        process, self._process, self._address = self._process, None, None
        if process is not None:
            await asyncio.to_thread(end, process)
        if self._temporary is not None:
            await asyncio.to_thread(shutil.rmtree, self._temporary, ignore_errors=True)
            self._temporary = None

    async def restarted(self) -> bool:
        """False: when it dies, a test has failed."""
        return False

    async def sql(self, command: str, deadline_s: float = 30.0) -> list[dict[str, object]]:  # noqa: ARG002 - the protocol's form
        raise EngineFailure("Neo4j has no SQL.", hint="Use a statement from cypher/; SQL is for the embedded engine.")

    def _home(self, java: Path, jars: Path) -> tuple[Path, str]:
        """A home folder with its configuration, and its password; the one that was there when it was started before."""
        if self._folder is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="lastro-neo4j-"))
        home = self._folder or self._temporary
        assert home is not None
        (home / "conf").mkdir(parents=True, exist_ok=True)
        (home / "conf" / "neo4j.conf").write_text(CONFIGURATION, "utf-8")
        file = home / "password"
        if not file.exists():
            draft = home / "password.new"
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_urlsafe(24), "ascii")
            set_first_password(java, jars, home, draft)
            draft.replace(file)
        return home, file.read_text("ascii")

    async def _answering(self, process: subprocess.Popen[bytes], console: Path, password: str) -> Address:
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until and process.poll() is None:
            bound = BOLT_LINE.search(text_of(console))
            if bound is not None:
                address = Address(uri=f"bolt://127.0.0.1:{bound[1]}", user=USER, password=password, database=None)
                if await answers(address):
                    return address
            await asyncio.sleep(0.2)
        why = f"was not ready within {START_LIMIT_S} s" if process.poll() is None else f"ended with status {process.returncode}"
        last = text_of(console).splitlines()[-5:]
        raise EngineStartFailed(f"Neo4j {self._line.version} {why}.", hint="Its last lines: " + " | ".join(last))


def launch(line: Line, java: Path, jars: Path, home: Path) -> subprocess.Popen[bytes]:
    """Java on its leash, its output in ``console.log``."""
    shell = shutil.which("sh")
    if shell is None:
        raise EngineNotInstalled("A local Neo4j needs a POSIX shell.")
    run = [str(java), "-Xms256m", "-Xmx768m", *line.flags, "-cp", f"{jars}/*", line.main]
    run += [f"--home-dir={home}", f"--config-dir={home / 'conf'}", "--console-mode"]
    with (home / "console.log").open("wb") as console:
        return subprocess.Popen(  # noqa: S603 - our own words and the Java that was found
            [shell, "-c", LEASH, "neo4j", *run], stdin=subprocess.PIPE, stdout=console, stderr=console, cwd=home, start_new_session=True
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """Let go of the leash and wait; kill the group, which is the shell and its Java, when they stay."""
    assert process.stdin is not None
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


def fetched_jars(version: str) -> Path:
    """The folder of Neo4j's jars, fetched at first. Raises ``EngineNotInstalled`` without ``mvn`` or when it cannot fetch them."""
    cache = Path(os.environ.get("LASTRO_CACHE") or Path.home() / ".cache" / "lastro")
    kept = cache / f"neo4j-{version}"
    if not (kept / "complete").exists():
        maven = shutil.which("mvn")
        if maven is None:
            raise EngineNotInstalled(
                "`mvn` is missing, which fetches Neo4j for tests.", hint="Install Apache Maven, or give a Neo4j by URI."
            )
        cache.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f"neo4j-{version}-", dir=cache))
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


def find_java(line: Line) -> Path:
    """The Java on this machine that the line prefers. Raises ``EngineNotInstalled`` when there is none that runs it."""
    found = {major: java for java in reversed(list(java_candidates())) if (major := java_major(java)) is not None}
    for major in line.javas:
        if major in found:
            return found[major]
    wanted = " or ".join(str(major) for major in sorted(line.javas))
    has = ", ".join(str(major) for major in sorted(found)) or "none"
    raise EngineNotInstalled(f"Neo4j {line.version} needs Java {wanted}; found: {has}.", hint="Install one, or point JAVA_HOME to it.")


def java_candidates(system: Sequence[Path] = (Path("/usr/lib/jvm"), Path("/Library/Java/JavaVirtualMachines"))) -> Iterator[Path]:
    """Every ``java`` of this machine: JAVA_HOME's, the path's, the system's folders'."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    homes: Iterable[Path] = (home for folder in system if folder.is_dir() for home in sorted(folder.iterdir()))
    for home in homes:
        yield home / "bin" / "java"
        yield home / "Contents" / "Home" / "bin" / "java"


def java_major(java: Path) -> int | None:
    """Major version that ``java`` says; None when it does not run."""
    if not os.access(java, os.X_OK):
        return None
    try:
        said = subprocess.run([str(java), "-version"], capture_output=True, check=False, timeout=30)  # noqa: S603 - found by the rules above
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(\d+)', said.stderr.decode("utf-8", "replace"))
    return int(version[1]) if version else None
