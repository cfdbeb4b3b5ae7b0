"""Where commands that govern a tenant happen: the service that LASTRO_URL names, with an admin's key, or the store on this machine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeVar

import typer
from pydantic import TypeAdapter, ValidationError

from app.bootstrap import Lastro
from app.cli.access import Target, opened
from app.client import LastroClient
from app.registry.registry import Credential
from graph.model.base import Timestamp, as_domain_error
from graph.model.errors import CommandRefused, Forbidden, InvalidField, NaiveTimestamp, NotFound
from graph.model.quota import SubjectType, UsageQuery
from graph.model.scope import AuthorizedScope

Door = TypeVar("Door")
Result = TypeVar("Result")

NOWHERE = Credential()
Tenant = Annotated[str | None, typer.Option(help="Tenant; through a service it is the key's own.", show_default=False)]

_SPAN = re.compile(r"^(\d{1,7})([smhdw]?)$")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_TIME: TypeAdapter[datetime] = TypeAdapter(Timestamp)


def governing(
    work: Callable[[Door | LastroClient], Awaitable[Result]],
    target: Target,
    tenant: str | None,
    local: Callable[[Lastro, AuthorizedScope], Door],
    *,
    place: Credential = NOWHERE,
    of_known_tenant: bool = True,
) -> Result:
    """Run ``work`` on the service, or on what ``local`` makes of the store on this machine.

    ``place`` names an organisation and assessment. Without ``of_known_tenant`` the store need not have the tenant (yet, or any more).

    Raises:
        CommandRefused: a URL without a key, a store without a tenant, or a key of another tenant than the one that is named.
    """

    async def within() -> Result:
        async with _opened(target, tenant, local, place, of_known_tenant=of_known_tenant) as door:
            return await work(door)

    return asyncio.run(within())


@asynccontextmanager
async def _opened(
    target: Target, tenant: str | None, local: Callable[[Lastro, AuthorizedScope], Door], place: Credential, *, of_known_tenant: bool
) -> AsyncGenerator[Door | LastroClient]:
    if target.remote:
        if target.url is None or not target.key:
            raise CommandRefused("LASTRO_URL is set without LASTRO_KEY.", hint="Set both, or neither to work on the store itself.")
        async with LastroClient(target.url, target.key, organization_id=place.organization_id, assessment_id=place.assessment_id) as client:
            if tenant is not None:
                await _refuse_another(client, tenant)
            yield client
        return
    if tenant is None:
        raise CommandRefused("--tenant is needed to work on the store itself.", hint="For example: --tenant acme")
    async with opened(target) as lastro:
        scope = lastro.registry.local(tenant, "cli", place=place)
        if of_known_tenant and not await lastro.registry.knows_tenant(scope):
            raise CommandRefused("The store has no tenant of that name.", hint="`lastro keys create` makes a tenant with its first key.")
        yield local(lastro, scope)


async def _refuse_another(client: LastroClient, tenant: str) -> None:
    """The service knows one tenant for a key: naming another must neither show nor change anything of this one."""
    try:
        await client.usage(UsageQuery(SubjectType.TENANT, tenant), limit=1)
    except NotFound:
        raise CommandRefused(
            "The key belongs to another tenant than --tenant.", hint="Leave --tenant out, or use that tenant's key."
        ) from None
    except Forbidden:
        # What the command itself needs may be less than it takes to ask for the tenant's name.
        raise CommandRefused(
            "Whether the key belongs to --tenant is told to admins and analysts.",
            hint="Leave it out: through a service it is the key's own.",
        ) from None


def seconds(text: str, option: str) -> int:
    """A length of time such as ``90``, ``90s``, ``15m``, ``1h``, ``7d`` or ``4w``, in seconds.

    Raises:
        CommandRefused: it is not one.
    """
    match = _SPAN.match(text)
    if match is None or int(match[1]) == 0:
        raise CommandRefused(f"{option} is a number and a unit.", hint="For example 90s, 15m, 1h, 7d or 4w.")
    return int(match[1]) * _SECONDS[match[2]]


def moment(text: str | None, option: str) -> datetime | None:
    """A time: RFC 3339 with an offset, or how long ago, such as ``7d``.

    Raises:
        CommandRefused, NaiveTimestamp, InvalidField: it is neither.
    """
    if text is None:
        return None
    if _SPAN.match(text):
        try:
            return datetime.now(UTC) - timedelta(seconds=seconds(text, option))
        except OverflowError:
            raise CommandRefused(f"{option} is too long ago.", hint="For example 7d.") from None
    try:
        return _TIME.validate_python(text)
    except ValidationError as failure:
        error = as_domain_error(failure)
        if not isinstance(error, NaiveTimestamp):
            error = InvalidField(
                f"{option} is not a time.", hint="A time is RFC 3339, such as 2026-03-04T08:06:07Z, or how long ago, such as 7d."
            )
        raise error.at(field=option) from None
