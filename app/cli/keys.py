"""`lastro keys`: made, listed, rotated and revoked. On the store itself for the first key; through a running service with an admin's key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeVar

import typer
from pydantic import ValidationError

from app.cli import options, output
from app.cli.access import Target
from app.cli.governed import Tenant, governing, seconds
from app.registry.key_operations import KeyOperations, RegistryKeys
from graph.model.base import as_domain_error
from graph.model.keys import CreatedKey, KeyList, KeyRequest, RotationRequest
from graph.model.scope import Role

Result = TypeVar("Result")

app = typer.Typer(
    no_args_is_help=True,
    help="Make, list, rotate and revoke API keys: on the store itself, or through a running service with LASTRO_URL and an admin's LASTRO_KEY.",
    epilog="Examples:  lastro keys create --tenant acme --agent triage   |   lastro keys list --tenant acme",
)


@app.command(epilog="Examples:  lastro keys create --tenant acme --agent triage --expires 30d --json")
def create(
    agent: Annotated[str, typer.Option(help="Agent that speaks with it.")],
    tenant: Tenant = None,
    role: Annotated[Role, typer.Option(help="admin, publisher, agent or analyst.")] = Role.AGENT,
    expires: Annotated[
        str | None, typer.Option(help="How long it holds: 90m, 12h, 30d, 4w. For ever when left out.", show_default=False)
    ] = None,
    organization: Annotated[str | None, typer.Option(help="Organisation that the key is bound to.", show_default=False)] = None,
    assessment: Annotated[str | None, typer.Option(help="Assessment that the key is bound to.", show_default=False)] = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Make a key. It is shown once and stored as a hash. The tenant is made with its first key."""
    expires_at = ends(expires)
    bound = {name: value for name, value in (("organization_id", organization), ("assessment_id", assessment)) if value is not None}
    try:
        asked = KeyRequest.model_validate({"agent_id": agent, "role": role, "expires_at": expires_at, "bound": bound})
    except ValidationError as failure:
        raise as_domain_error(failure) from None
    made: CreatedKey = _run(lambda door: door.create_key(asked), Target(url, key, engine, data), tenant)
    _show(made, as_json=as_json)


@app.command(
    epilog="Examples:  lastro keys rotate 0123456789abcdef   |   lastro keys rotate --tenant acme 0123456789abcdef --overlap 2h --json"
)
def rotate(
    key_id: Annotated[str, typer.Argument(help="Id of the key, as `lastro keys list` shows it.")],
    tenant: Tenant = None,
    overlap: Annotated[str, typer.Option(help="How long the old key goes on working: 0, 90m, 12h, 30d, 4w.")] = "1d",
    expires: Annotated[
        str | None, typer.Option(help="How long the new key holds; as long as the old one was made for when left out.", show_default=False)
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Make a key that takes the place of another: the same agent, role and bounds. The old one ends after the overlap."""
    overlap_s = 0 if overlap == "0" else seconds(overlap, "--overlap")
    expires_at = ends(expires)
    try:
        asked = RotationRequest.model_validate({"overlap_s": overlap_s, "expires_at": expires_at})
    except ValidationError as failure:
        raise as_domain_error(failure) from None
    made: CreatedKey = _run(lambda door: door.rotate_key(key_id, asked), Target(url, key, engine, data), tenant)
    _show(made, as_json=as_json)
    if not as_json:
        output.err.print(f"Key {key_id} " + (f"ends in {overlap}." if overlap_s else "is revoked."), markup=False)


@app.command("list", epilog="Examples:  lastro keys list --tenant acme")
def list_(
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """List a tenant's keys, without what could be used as one."""
    found: KeyList = _run(lambda door: door.list_keys(), Target(url, key, engine, data), tenant)
    if as_json:
        output.print_json(found)
        return
    output.table(
        ["id", "agent", "role", "state", "expires"],
        [
            (item.id, item.agent_id, item.role, item.state, "never" if item.expires_at is None else f"{item.expires_at:%Y-%m-%d %H:%M}")
            for item in found.keys
        ],
    )


@app.command(epilog="Examples:  lastro keys revoke --tenant acme 0123456789abcdef")
def revoke(
    key_id: Annotated[str, typer.Argument(help="Id of the key, as `lastro keys list` shows it.")],
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Revoke a key. It stops working at once."""
    _run(lambda door: door.revoke_key(key_id), Target(url, key, engine, data), tenant)
    if as_json:
        output.print_json({"id": key_id, "revoked": True})
    else:
        output.err.print(f"Key {key_id} is revoked.", markup=False)


def _show(made: CreatedKey, *, as_json: bool) -> None:
    """A key just made: its text for a pipe, the rest for people."""
    if as_json:
        output.print_json(made)
        return
    output.out.print(made.key, soft_wrap=True, markup=False)
    told = f"Key {made.id} of tenant {made.tenant_id}, agent {made.agent_id}, role {made.role}. This is the only time it is shown."
    output.err.print(told, markup=False)


def _run(work: Callable[[KeyOperations], Awaitable[Result]], target: Target, tenant: str | None) -> Result:
    return governing(work, target, tenant, lambda lastro, scope: RegistryKeys(lastro.registry, scope), of_known_tenant=False)


def ends(span: str | None) -> datetime | None:
    """When what holds for ``span`` (such as ``30d``) ends; None for ever.

    Raises:
        CommandRefused: it is not a span.
    """
    return None if span is None else datetime.now(UTC) + timedelta(seconds=seconds(span, "--expires"))
