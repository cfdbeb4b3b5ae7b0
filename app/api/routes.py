"""What each address does. Thin: who asks, what is asked, the call, the answer."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import TypeAdapter, ValidationError

from app.api.documentation import body_of, schema_document
from app.bootstrap import Lastro
from app.registry.permissions import Action
from app.registry.registry import Credential
from graph.model.answer import ContextAnswer, Lineage
from graph.model.base import Model, Timestamp, as_domain_error, check_id, parse
from graph.model.errors import BodyTooLarge, BodyTooSlow, InvalidField, InvalidId, InvalidJson
from graph.model.query import ContextQuery
from graph.model.scope import AuthorizedScope
from graph.model.units import ContextUnit, UnitBatch, UnitPage, WriteResult

probes = APIRouter(tags=["probes"])
v1 = APIRouter(prefix="/v1")

BODY_DEADLINE_S = 10.0
"""A body that takes longer holds a place that others need."""
DEPTH_MOST = 10
PAGE_MOST = 200
Reason = Annotated[str | None, Query(description="Why; kept in the audit trail. At most 512 characters.")]
_TIME: TypeAdapter[datetime] = TypeAdapter(Timestamp)


@v1.post("/units", status_code=201, response_model=WriteResult, openapi_extra=body_of(UnitBatch), tags=["units"])
async def write_units(request: Request) -> Response:
    """Store a batch of units with their edges: all of them, or none. Sending the same batch again changes nothing."""
    lastro = lastro_of(request)
    scope = await scope_of(request, Action.WRITE_UNITS)
    batch = parse(UnitBatch, await body(request), batch_field="units")
    return as_json(await lastro.ingest.write(scope, batch.units), status=201)


@v1.get("/units", response_model=UnitPage, tags=["units"])
async def list_units(
    request: Request,
    session_id: Annotated[str | None, Query(description="Only units of this session.")] = None,
    task_id: Annotated[str | None, Query(description="Only units of this task.")] = None,
    limit: Annotated[str, Query(description=f"Units in a page, 1 to {PAGE_MOST}.")] = "50",
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
) -> Response:
    """A page of units, newest first."""
    lastro = lastro_of(request)
    scope = await scope_of(request, Action.READ_UNITS)
    for name, value in (("session_id", session_id), ("task_id", task_id)):
        if value is not None:
            id_of(value, name)
    page = await lastro.units.page(scope, session_id=session_id, task_id=task_id, limit=number(limit, "limit", PAGE_MOST), cursor=cursor)
    await lastro.crossings.note(scope, page.units)
    return as_json(page)


@v1.get("/units/{unit_id:path}/lineage", response_model=Lineage, tags=["units"])
async def read_lineage(
    request: Request,
    unit_id: str,
    direction: Annotated[str, Query(description="before, after or both.")] = "both",
    depth: Annotated[str, Query(description=f"Edges to follow, 1 to {DEPTH_MOST}.")] = "3",
) -> Response:
    """What a unit came from, and what came from it."""
    if not request.scope["raw_path"].endswith(b"/lineage"):
        # The slash was sent as %2F, so it is a part of the id: what is asked for is the unit.
        return await read_unit(request, f"{unit_id}/lineage")
    lastro = lastro_of(request)
    scope = await scope_of(request, Action.READ_UNITS)
    if direction not in {"before", "after", "both"}:
        raise InvalidField("direction is before, after or both.").at(field="direction")
    found = await lastro.units.lineage(
        scope, id_of(unit_id, "id"), before=direction != "after", after=direction != "before", depth=number(depth, "depth", DEPTH_MOST)
    )
    await lastro.crossings.note(scope, found.units)
    return as_json(found)


@v1.get("/units/{unit_id:path}", response_model=ContextUnit, tags=["units"])
async def read_unit(request: Request, unit_id: str) -> Response:
    """One unit. The answer for another tenant's unit is the same as for one that does not exist."""
    lastro = lastro_of(request)
    scope = await scope_of(request, Action.READ_UNITS)
    found = await lastro.units.read(scope, id_of(unit_id, "id"))
    await lastro.crossings.note(scope, [found])
    return as_json(found)


@v1.post("/context", response_model=ContextAnswer, openapi_extra=body_of(ContextQuery), tags=["context"])
async def answer_context(request: Request) -> Response:
    """The units that matter for a task, a step, a unit or a session, under a budget, rendered for a model, with a receipt."""

    async def read_query() -> ContextQuery:
        return parse(ContextQuery, await body(request))

    return as_json(await lastro_of(request).router.answer(read_query, credential_of(request)))


@v1.get("/schema", tags=["schema"])
async def read_schema() -> Response:
    """JSON Schema (2020-12) of the neutral format, generated from the code."""
    return Response(schema_document(), media_type="application/schema+json")


@probes.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers. Says nothing of the database; see /readyz."""
    return {"status": "alive"}


@probes.get("/readyz")
async def readyz(request: Request, response: Response) -> dict[str, object]:
    """The database answers too; 503 and a code when it does not."""
    readiness = await lastro_of(request).health.readiness()
    if not readiness.ready:
        response.status_code = 503
        response.headers["Retry-After"] = "2"
    return {
        "status": "ready" if readiness.ready else "not ready",
        "engine": readiness.engine,
        "server": readiness.server,
        "ms": readiness.ms,
        "problem": readiness.problem,
        "retention": readiness.retention,
        "tiers": readiness.tiers,
        "embedding": readiness.embedding,
        "embedding_due": readiness.embedding_due,
        "embedding_lag_s": readiness.embedding_lag_s,
        "usage": readiness.usage,
        "ledger": readiness.ledger,
        "attachments": readiness.attachments,
    }


def lastro_of(request: Request) -> Lastro:
    """The running Lastro of this service."""
    lastro: Lastro = request.app.state.lastro
    return lastro


def credential_of(request: Request) -> Credential:
    """Who claims to ask, from the headers."""
    headers = request.headers
    return Credential(
        authorization=headers.get("authorization"),
        session_id=headers.get("lastro-session"),
        model=headers.get("lastro-model"),
        organization_id=headers.get("lastro-organization"),
        assessment_id=headers.get("lastro-assessment"),
    )


async def scope_of(request: Request, action: Action) -> AuthorizedScope:
    """Identity, then permission, then the limits of bandwidth; before anything of the request is read."""
    registry = lastro_of(request).registry
    credential = credential_of(request)
    scope = registry.authorize(await registry.identify(credential), action, credential)
    await lastro_of(request).quotas.admit(scope, action)
    return scope


async def body(request: Request) -> bytes:
    """The request's body, read no further than the limit.

    Raises:
        BodyTooLarge: more than ``max_body_bytes``.
        InvalidJson: there is none, or it is not JSON by its content type.
    """
    most = lastro_of(request).settings.max_body_bytes
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise InvalidJson(hint="Send Content-Type: application/json.")
    told = request.headers.get("content-length", "")
    if told.isdigit() and (len(told) > 15 or int(told) > most):  # noqa: PLR2004 (digits of a size that exists)
        raise BodyTooLarge(f"The body is over the limit of {most} bytes.")
    try:
        async with asyncio.timeout(BODY_DEADLINE_S):
            return await _received(request, most)
    except TimeoutError:
        raise BodyTooSlow from None


async def _received(request: Request, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise BodyTooLarge(f"The body is over the limit of {most} bytes.")
        parts.append(part)
    if size == 0:
        raise InvalidJson("The body is empty.")
    return b"".join(parts)


def id_of(value: str, name: str) -> str:
    """The value when it is an id."""
    try:
        return check_id(value)
    except ValueError:
        raise InvalidId().at(field=name) from None


def time_of(value: str | None, name: str) -> datetime | None:
    """The value when it is a time with an offset.

    Raises:
        NaiveTimestamp, InvalidField: it is not.
    """
    try:
        return None if value is None else _TIME.validate_python(value)
    except ValidationError as failure:
        raise as_domain_error(failure).at(field=name) from None


def number(value: str, name: str, most: int) -> int:
    """A whole number from 1 to ``most``."""
    if not (value.isascii() and value.isdigit() and len(value) <= 9 and 1 <= int(value) <= most):  # noqa: PLR2004 (fits an int)
        raise InvalidField(f"{name} is a whole number from 1 to {most}.").at(field=name)
    return int(value)


def as_json(model: Model, status: int = 200) -> Response:
    """A model as the response; already checked, so it is written once and not validated again."""
    return Response(model.model_dump_json(), status_code=status, media_type="application/json")
