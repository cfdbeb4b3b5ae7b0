"""One running service per engine for the whole suite. Tests keep apart by making tenants of their own.

Which engines: the embedded one always; and Neo4j where NEO4J_URI says, else a container when a Docker engine answers, else two local
servers (5.26 LTS and the newest line) from Maven artifacts. One that cannot be had fails its tests; nothing is skipped.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
import uuid
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx2
import pytest
import uvicorn

from app.api.service import create_service
from app.bootstrap import Lastro, running
from app.settings import Settings, load_settings
from graph.engines.base import Engine
from graph.engines.embedded import EmbeddedEngine
from graph.engines.local_server import LocalNeo4j
from graph.engines.neo4j import GivenNeo4j
from graph.model.scope import Role
from graph.model.units import Scope

Result = TypeVar("Result")
START_S = 240
TESTS = Path(__file__).parent
SAME_ON_BOTH_LINES = ("cli/", "security/test_oidc", "security/test_key_rotation", "api/test_refused_", "api/test_published")
"""Tests of doors and tokens, which no line of Neo4j makes a difference to: they run on the embedded engine and on one Neo4j."""
LOOK_AT_EVERY_NODE = ("governance/test_tenant_erasure", "governance/test_erasure", "security/test_leaks")
"""Tests whose statements look at the whole database: they go first, while it holds little."""

# Most tests need no vectors, and a model costs each service and command seconds; those that need one say so.
os.environ.setdefault("LASTRO_EMBEDDER", "none")


@cache
def docker_answers() -> bool:
    """Whether a Docker engine runs here, not just its client."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False).returncode == 0


def engine_names() -> list[str]:
    if os.environ.get("NEO4J_URI"):
        return ["embedded", "neo4j-given"]
    if docker_answers():
        return ["embedded", "neo4j-container"]
    return ["embedded", "neo4j-5.26", "neo4j-newest"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", action="append", help="Only this engine; may be given more than once. For work on one of them.")
    parser.addoption("--part", choices=["engines", "others"], help="Only tests that run on each engine, or only the others.")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "engine_name" in metafunc.fixturenames:
        wanted = metafunc.config.getoption("--engine")
        metafunc.parametrize("engine_name", wanted or engine_names(), scope="session")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """``--part``: tests of an engine, or those that need none or start their own. ``tests.parts`` runs these beside each other."""
    part = config.getoption("--part")
    left = [item for item in items if part is None or (_engine_of(item) is not None) == (part == "engines")]
    left = [item for item in left if not (_engine_of(item) == "neo4j-newest" and _is_the_same_on_both_lines(item))]
    left.sort(key=lambda item: (_engine_of(item) or "", not _within(item).startswith(LOOK_AT_EVERY_NODE)))
    kept = set(left)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = left


def _engine_of(item: pytest.Item) -> str | None:
    if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
        return cast("str | None", item.callspec.params.get("engine_name"))
    return None


def _is_the_same_on_both_lines(item: pytest.Item) -> bool:
    return _within(item).startswith(SAME_ON_BOTH_LINES)


def _within(item: pytest.Item) -> str:
    """The test's file, below the folder of tests."""
    return item.path.relative_to(TESTS).as_posix()


def make_engine(name: str, folder: Path) -> Engine:
    """An engine for tests, not started."""
    match name:
        case "embedded":
            return EmbeddedEngine(folder / "embedded", heap_mb=384)
        case "neo4j-5.26":
            return LocalNeo4j("5.26")
        case "neo4j-newest":
            return LocalNeo4j("newest")
        case "neo4j-container":
            return _container()
        case _:
            return GivenNeo4j(os.environ["NEO4J_URI"], os.environ.get("NEO4J_USER", "neo4j"), os.environ.get("NEO4J_PASSWORD", ""))


def _container() -> Engine:
    from testcontainers.community.neo4j import Neo4jContainer

    container: Any = cast("Any", Neo4jContainer)("neo4j:5.26")
    container.start()
    return GivenNeo4j(container.get_connection_url(), "neo4j", container.password)


@dataclass
class Service:
    """A service on a real port of this machine, in a thread of its own."""

    engine_name: str
    settings: Settings
    lastro: Lastro
    url: str
    loop: asyncio.AbstractEventLoop = field(repr=False)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine where the service runs."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout=120)

    def key(self, tenant: str, agent: str = "agent-1", role: Role = Role.AGENT, bound: Scope | None = None, **more: Any) -> str:
        """A fresh key, as an operator makes it."""
        scope = self.lastro.registry.local(tenant, "operator")
        return self.run(self.lastro.registry.create_key(scope, agent_id=agent, role=role, bound=bound, **more)).text

    def client(self, key: str | None = None, **headers: str) -> httpx2.Client:
        """An HTTP client with a key and Lastro-… headers (``session``, ``model``, ``organization``, ``assessment``)."""
        told = {f"Lastro-{name.title()}": value for name, value in headers.items()}
        if key is not None:
            told["Authorization"] = f"Bearer {key}"
        return httpx2.Client(base_url=self.url, headers=told, timeout=90)


class RunningServer(uvicorn.Server):
    """A uvicorn server that tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


def serve_in_thread(
    name: str, settings: Settings, start: Callable[[], AbstractAsyncContextManager[Lastro]]
) -> tuple[Service, Callable[[], None]]:
    """A service in a thread, and how to stop it."""
    application = create_service(settings, start)
    server = RunningServer(uvicorn.Config(application, host="127.0.0.1", port=0, log_config=None, access_log=False))
    loop = asyncio.new_event_loop()

    def work() -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(server.serve())
        finally:
            loop.close()

    thread = threading.Thread(target=work, name=f"service on {name}", daemon=True)
    thread.start()
    if not server.listening.wait(START_S) or not server.servers:
        server.should_exit = True
        pytest.fail(f"the service did not start on {name}; see the log above", pytrace=False)
    port = server.servers[0].sockets[0].getsockname()[1]
    service = Service(name, settings, application.state.lastro, f"http://127.0.0.1:{port}", loop)

    def stop() -> None:
        server.should_exit = True
        thread.join(60)

    return service, stop


@pytest.fixture(scope="session")
def service(engine_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service on one engine, shared by all tests of the session."""
    folder = tmp_path_factory.mktemp(engine_name)
    settings = load_settings(data=folder)
    engine = make_engine(engine_name, folder)
    found, stop = serve_in_thread(engine_name, settings, lambda: running(settings, engine))
    yield found
    stop()


@pytest.fixture
def tenant() -> str:
    """A tenant of the test's own."""
    return f"tenant-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def other_tenant() -> str:
    """Another one."""
    return f"stranger-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def client(service: Service, tenant: str) -> Iterator[httpx2.Client]:
    """An agent of the test's tenant, in a session."""
    with service.client(service.key(tenant), session="session-1") as found:
        yield found


@pytest.fixture
def admin(service: Service, tenant: str) -> Iterator[httpx2.Client]:
    """An admin of the test's tenant, in no session."""
    with service.client(service.key(tenant, "boss", Role.ADMIN)) as found:
        yield found


@pytest.fixture
def stranger(service: Service) -> Iterator[httpx2.Client]:
    """An agent of another tenant."""
    with service.client(service.key(f"stranger-{uuid.uuid4().hex[:12]}"), session="session-1") as found:
        yield found


def unit(id: str, content: str = "Something was seen.", kind: str = "observation", **more: Any) -> dict[str, Any]:
    """A unit on the wire. Keyword arguments that are fields of metadata go there."""
    metadata = {name: more.pop(name) for name in list(more) if name in METADATA}
    body: dict[str, Any] = {"id": id, "kind": kind, "content": content, **more}
    if metadata:
        body["metadata"] = metadata
    return body


METADATA = frozenset(
    [
        "timestamp",
        "agent_id",
        "actor",
        "session_id",
        "task_id",
        "task_step",
        "epistemic_status",
        "provenance",
        "relevance_score",
        "tier",
        "tool",
    ]
)


def edge(target: str, edge_type: str = "causation") -> dict[str, str]:
    return {"target_id": target, "edge_type": edge_type}
