"""`lastro serve`."""

from __future__ import annotations

import ipaddress
import logging
from typing import Annotated

import typer

from app.cli import options, output
from app.settings import load_settings

EXAMPLES = "Examples:  lastro serve   |   lastro serve --port 0 --data ./data   |   lastro serve --engine neo4j"


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (127.0.0.1).  [env var: LASTRO_HOST]", show_default=False)] = None,
    port: Annotated[int | None, typer.Option(help="Port (8420); 0 takes a free one.  [env var: LASTRO_PORT]", show_default=False)] = None,
    engine: options.Engine = None,
    data: options.Data = None,
) -> None:
    """Run the service: REST under /v1, OpenAPI at /openapi.json, probes at /healthz and /readyz."""
    settings = load_settings(host=host, port=port, engine=engine, data=data)
    logging.getLogger().setLevel(settings.log_level)
    if not is_loopback(settings.host):
        output.err.print(f"[yellow]note[/] listening beyond this machine on {settings.host}: put TLS in front, keys travel in headers")
    # FastAPI takes most of a second to load, and no other command needs it.
    from app.api.server import run_server  # noqa: PLC0415 (as said above)

    run_server(settings, lambda told: output.err.print(told, soft_wrap=True, markup=False))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
