"""The service in a process of its own: uvicorn around the FastAPI application."""

from __future__ import annotations

import contextlib
import gc
import logging
import socket
from collections.abc import Callable

import uvicorn

from app.api.service import create_service
from app.bootstrap import running
from app.settings import EngineName, Settings
from graph.model.errors import EngineFailure

GC_THRESHOLD = 50_000
"""New container objects between two runs of the garbage collector."""
DRAIN_S = 10
"""Seconds that requests under way have when the service is told to stop."""


class StartFailed(EngineFailure):
    code = "start_failed"
    message = "The service did not start."
    hint = "The lines above say why; `lastro doctor` checks the rest."


def run_server(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve until told to stop. ``announce`` is told where, once it listens.

    Raises:
        EngineFailure: the database or the port cannot be had.
    """
    _refuse_taken_port(settings)
    service = create_service(settings, lambda: running(settings))
    config = uvicorn.Config(
        service,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_S,
        timeout_keep_alive=30,
    )
    place = f"embedded engine in {settings.data}" if settings.engine is EngineName.EMBEDDED else "Neo4j"
    server = AnnouncedServer(config, lambda url: announce(f"lastro listens on {url} ({place})"))
    # A start that fails is told below, by our own error; uvicorn would print the traceback and leave.
    logging.getLogger("uvicorn.error").addFilter(lambda record: not record.getMessage().startswith("Traceback"))
    with contextlib.suppress(SystemExit):
        server.run()
    failure = getattr(service.state, "start_failure", None)
    if failure is not None:
        raise failure
    if not server.started:
        raise StartFailed


def _refuse_taken_port(settings: Settings) -> None:
    """Said before the engine is started, not after."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError:
            raise StartFailed(
                f"Nothing can listen on {settings.host}:{settings.port}.", hint="Another service may be there: --port 0 takes a free port."
            ) from None


class AnnouncedServer(uvicorn.Server):
    """Says where it listens once it does; the port may have been chosen by the system."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[str], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        # What was loaded stays: taken out of the garbage collector's sight, or it walks all of it again while batches are parsed.
        gc.collect()
        gc.freeze()
        # A batch makes thousands of objects that all go with it: at the default of 700 the collector would run dozens of times for nothing.
        gc.set_threshold(GC_THRESHOLD, 20, 50)
        for listening in self.servers:
            for bound in listening.sockets:
                address, port = bound.getsockname()[:2]
                self._announce(f"http://{address}:{port}")
