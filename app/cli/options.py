"""Options that several commands share, each also an environment variable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.settings import EngineName

Url = Annotated[
    str | None, typer.Option(envvar="LASTRO_URL", help="Service to talk to; without it the local store is used.", show_default=False)
]
Key = Annotated[str | None, typer.Option(envvar="LASTRO_KEY", help="API key for --url.", show_default=False, show_envvar=True)]
Engine = Annotated[
    EngineName | None, typer.Option(help="embedded or neo4j (LASTRO_NEO4J_URI …).  [env var: LASTRO_ENGINE]", show_default=False)
]
Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engine.  [env var: LASTRO_DATA]", show_default=False)]
Tenant = Annotated[str, typer.Option(envvar="LASTRO_TENANT", help="Tenant, on the local store.")]
Agent = Annotated[str, typer.Option(envvar="LASTRO_AGENT", help="Agent, on the local store.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
