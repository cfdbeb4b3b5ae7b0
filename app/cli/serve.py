"""`lastro serve`."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
from typing import Annotated

import typer
import uvicorn

from app.api.service import create_service
from app.bootstrap import running
from app.cli import options, output
from app.settings import EngineName, load_settings
from graph.model.errors import EngineFailure

EXAMPLES = "Examples:  lastro serve   |   lastro serve --port 0 --data ./data   |   lastro serve --engine neo4j"

DRAIN_S = 10


class StartFailed(EngineFailure):
    code = "start_failed"
    message = "The service did not start."
    hint = "The lines above say why; `lastro doctor` checks the rest."


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).  [env var: LASTRO_HOST]", show_default=False)] = None,
    port: Annotated[int | None, typer.Option(help="Port (8420); 0 takes a free one.  [env var: LASTRO_PORT]", show_default=False)] = None,
    engine: options.Engine = None,
    data: options.Data = None,
) -> None:
    """Run the service: REST under /v1, OpenAPI at /docs, probes at /healthz and /readyz."""
    settings = load_settings(host=host, port=port, engine=engine, data=data)
    logging.getLogger().setLevel(settings.log_level)
    if not is_loopback(settings.host):
        output.err.print(f"[yellow]note[/] listening beyond this machine on {settings.host}: put TLS in front, keys travel in headers")
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
    server = AnnouncedServer(
        config, where="embedded engine in " + str(settings.data) if settings.engine is EngineName.EMBEDDED else "Neo4j"
    )
    # A start that fails is told below, by our own error; uvicorn would print the traceback and leave.
    logging.getLogger("uvicorn.error").addFilter(lambda record: not record.getMessage().startswith("Traceback"))
    with contextlib.suppress(SystemExit):
        server.run()
    failure = getattr(service.state, "start_failure", None)
    if failure is not None:
        raise failure
    if not server.started:
        raise StartFailed


class AnnouncedServer(uvicorn.Server):
    """Says where it listens once it does; the port may have been chosen by the system."""

    def __init__(self, config: uvicorn.Config, where: str) -> None:
        super().__init__(config)
        self._where = where

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        for listening in self.servers:
            for socket in listening.sockets:
                address, port = socket.getsockname()[:2]
                output.err.print(f"lastro listens on http://{address}:{port} ({self._where})", soft_wrap=True)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
