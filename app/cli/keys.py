"""`lastro keys`: made, listed and revoked on the store itself, so that the first key needs none."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from app.bootstrap import running
from app.cli import options, output
from app.registry.registry import Registry
from app.settings import load_settings
from graph.model.base import check_id
from graph.model.errors import CommandRefused
from graph.model.scope import AuthorizedScope, Role
from graph.model.units import Scope
from graph.registry_store import NEVER, StoredKey

app = typer.Typer(
    no_args_is_help=True,
    help="Make, list and revoke API keys, on the store itself (stop an embedded service first).",
    epilog="Examples:  lastro keys create --tenant acme --agent triage   |   lastro keys list --tenant acme",
)

SPAN = re.compile(r"^(\d{1,6})([mhdw])$")
SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


@app.command(epilog="Examples:  lastro keys create --tenant acme --agent triage --expires 30d --json")
def create(
    tenant: Annotated[str, typer.Option(help="Tenant that the key belongs to; made with its first key.")],
    agent: Annotated[str, typer.Option(help="Agent that speaks with it.")],
    role: Annotated[Role, typer.Option(help="admin, publisher, agent or analyst.")] = Role.AGENT,
    expires: Annotated[
        str | None, typer.Option(help="How long it holds: 90m, 12h, 30d, 4w. For ever when left out.", show_default=False)
    ] = None,
    organization: Annotated[str | None, typer.Option(help="Organisation that the key is bound to.", show_default=False)] = None,
    assessment: Annotated[str | None, typer.Option(help="Assessment that the key is bound to.", show_default=False)] = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Make a key. It is shown once and stored as a hash."""
    expires_at = datetime.now(UTC) + span(expires) if expires is not None else None
    for name, value in (("--organization", organization), ("--assessment", assessment)):
        _checked(name, value)

    async def work() -> None:
        async with _registry(tenant, engine, data) as (registry, scope):
            made = await registry.create_key(
                scope, agent_id=agent, role=role, expires_at=expires_at, bound=Scope(organization_id=organization, assessment_id=assessment)
            )
        if as_json:
            output.print_json({"key": made.text, **_told(made.stored)})
            return
        output.out.print(made.text, soft_wrap=True)
        output.err.print(
            f"Key {made.stored.id} of tenant {tenant}, agent {agent}, role {role}. This is the only time it is shown.", markup=False
        )

    asyncio.run(work())


@app.command("list", epilog="Examples:  lastro keys list --tenant acme")
def list_(
    tenant: Annotated[str, typer.Option(help="Whose keys.")],
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """List a tenant's keys, without what could be used as one."""

    async def work() -> list[StoredKey]:
        async with _registry(tenant, engine, data) as (registry, scope):
            return await registry.list_keys(scope)

    found = asyncio.run(work())
    if as_json:
        output.print_json({"keys": [_told(key) for key in found]})
        return
    output.table(
        ["id", "agent", "role", "state", "expires"],
        [
            (key.id, key.agent_id, key.role, _state(key), "never" if key.expires_at == NEVER else f"{key.expires_at:%Y-%m-%d %H:%M}")
            for key in found
        ],
    )


@app.command(epilog="Examples:  lastro keys revoke --tenant acme 0123456789abcdef")
def revoke(
    key_id: Annotated[str, typer.Argument(help="Id of the key, as `lastro keys list` shows it.")],
    tenant: Annotated[str, typer.Option(help="Whose key.")],
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Revoke a key. It stops working at once."""

    async def work() -> None:
        async with _registry(tenant, engine, data) as (registry, scope):
            await registry.revoke_key(scope, key_id)

    asyncio.run(work())
    if as_json:
        output.print_json({"id": key_id, "revoked": True})
    else:
        output.err.print(f"Key {key_id} is revoked.", markup=False)


@asynccontextmanager
async def _registry(tenant: str, engine: options.Engine, data: options.Data) -> AsyncGenerator[tuple[Registry, AuthorizedScope]]:
    async with running(load_settings(engine=engine, data=data), warm_up=False) as lastro:
        yield lastro.registry, lastro.registry.local(tenant, "cli")


def span(text: str) -> timedelta:
    """A time span such as ``30d``.

    Raises:
        CommandRefused: it is not one.
    """
    match = SPAN.match(text)
    if match is None or int(match[1]) == 0:
        raise CommandRefused("--expires is a number and a unit.", hint="For example 90m, 12h, 30d or 4w.")
    return timedelta(seconds=int(match[1]) * SECONDS[match[2]])


def _checked(name: str, value: str | None) -> None:
    if value is None:
        return
    try:
        check_id(value)
    except ValueError:
        raise CommandRefused(f"{name} is not an id.", hint="1 to 128 visible characters, no spaces.") from None


def _state(key: StoredKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at <= datetime.now(UTC) else "active"


def _told(key: StoredKey) -> dict[str, object]:
    return {
        "id": key.id,
        "tenant_id": key.tenant_id,
        "agent_id": key.agent_id,
        "role": key.role.value,
        "organization_id": key.bound.organization_id,
        "assessment_id": key.bound.assessment_id,
        "expires_at": None if key.expires_at == NEVER else key.expires_at.isoformat(),
        "state": _state(key),
    }
