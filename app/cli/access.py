"""Where a command's operations happen: the service that LASTRO_URL names, or the store on this machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from app.bootstrap import Lastro, running
from app.cli.output import err
from app.client import LastroClient
from app.operations import LocalOperations, Operations
from app.registry.registry import Credential
from app.settings import EngineName, load_settings
from graph.model.errors import CommandRefused


@dataclass(frozen=True, slots=True)
class Target:
    """Options that every command on units shares."""

    url: str | None = None
    key: str | None = None
    engine: EngineName | None = None
    data: Path | None = None
    tenant: str = "local"
    agent: str = "cli"
    session: str | None = None
    organization: str | None = None
    assessment: str | None = None

    @property
    def remote(self) -> bool:
        """Whether a service is named. An engine or folder given on the command line means the local store."""
        return self.url is not None and self.engine is None and self.data is None

    @property
    def place(self) -> str:
        """Where is looked, for people."""
        return str(self.url) if self.remote else f"the local store, tenant {self.tenant}"

    @property
    def name(self) -> str:
        """What tells two stores apart, for import checkpoints."""
        if self.remote:
            key = self.key or ""
            # The id of an API key. A token has none and begins like every other: it stands for itself, and an import that outlives it begins
            # anew, which changes nothing that is stored.
            return f"{self.url} {key[:23] if key.startswith('lastro_') else hashlib.sha256(key.encode()).hexdigest()}"
        settings = load_settings(engine=self.engine, data=self.data)
        place = str(settings.data.resolve()) if settings.engine is EngineName.EMBEDDED else settings.neo4j_uri
        return f"{settings.engine} {place} {self.tenant} {self.agent}"


@asynccontextmanager
async def opened(target: Target) -> AsyncGenerator[Lastro]:
    """The local store, started and stopped around the block; says on a terminal that this takes a moment."""
    stack = AsyncExitStack()
    with err.status("opening the store …"):
        lastro = await stack.enter_async_context(running(load_settings(engine=target.engine, data=target.data), warm_up=False))
    async with stack:
        yield lastro


@asynccontextmanager
async def operations(target: Target) -> AsyncGenerator[Operations]:
    """The operations on the target, started and stopped around the block.

    Raises:
        CommandRefused: a URL without a key.
        EngineFailure: the local store cannot be opened, for example because a service owns it.
    """
    if target.remote:
        if target.url is None or not target.key:
            raise CommandRefused("LASTRO_URL is set without LASTRO_KEY.", hint="Set both, or neither to work on the local store.")
        if not target.url.startswith(("http://", "https://")):
            raise CommandRefused("LASTRO_URL is not a web address.", hint="It begins with http:// or https://.")
        client = LastroClient(
            target.url,
            target.key,
            session_id=target.session,
            organization_id=target.organization,
            assessment_id=target.assessment,
        )
        async with client:
            yield client
        return
    async with opened(target) as lastro:
        place = Credential(organization_id=target.organization, assessment_id=target.assessment)
        scope = lastro.registry.local(target.tenant, target.agent, session_id=target.session, place=place)
        await lastro.registry.ensure_tenant(scope)
        yield LocalOperations(lastro, scope)


def environment_url() -> str | None:
    """LASTRO_URL, if set to something."""
    return os.environ.get("LASTRO_URL") or None
