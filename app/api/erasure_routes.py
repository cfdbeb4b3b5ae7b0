"""Erasure and retention over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.api.documentation import body_of
from app.api.routes import Reason, as_json, body, id_of, lastro_of, scope_of
from app.governance.erasure import REQUEST_S
from app.registry.permissions import Action
from graph.model.audit import reason_of
from graph.model.base import parse
from graph.model.erasure import ErasureLine, Refuses, TenantErasure
from graph.model.errors import InvalidField, LastroError
from graph.model.retention import Retention, RetentionReport, RetentionRun

erasures = APIRouter(prefix="/v1")

NDJSON = "application/x-ndjson"
TOMBSTONE = "Lastro-Tombstone"


@erasures.delete("/units/{unit_id:path}", status_code=204, tags=["units"])
async def erase_unit(
    request: Request,
    unit_id: str,
    reason: Reason = None,
    refuse: Annotated[str, Query(description="`value`: its id and its content are refused from now on; `id`: its id alone.")] = "value",
) -> Response:
    """Erase a unit: an admin any that it sees, an agent its own. It is gone at once; what stood on it is marked `source_erased`.

    `Lastro-Tombstone` in the answer is how the audit trail names what was erased.
    """
    scope = await scope_of(request, Action.ERASE_UNITS)
    if refuse not in set(Refuses):
        raise InvalidField("refuse is value or id.").at(field="refuse")
    tombstone = await lastro_of(request).erasure.unit(scope, id_of(unit_id, "id"), reason=reason_of(reason), refuses=Refuses(refuse))
    return Response(status_code=204, headers={TOMBSTONE: tombstone})


@erasures.delete("/tenant", response_model=ErasureLine, openapi_extra=body_of(TenantErasure), tags=["tenant"])
async def erase_tenant(request: Request) -> Response:
    """Erase everything of the caller's tenant, its keys last. The answer is NDJSON: lines of progress, and the certificate at the end.

    It goes on when the caller leaves. Calling again, while a key is left, joins in.
    """
    lastro = lastro_of(request)
    scope = await scope_of(request, Action.ERASE_TENANT)
    await lastro.erasure.begin_tenant(scope, parse(TenantErasure, await body(request)))

    async def lines() -> AsyncIterator[bytes]:
        try:
            async for line in lastro.erasure.rest_of_tenant(scope):
                yield line.model_dump_json(exclude_none=True).encode() + b"\n"
        except LastroError as error:
            told = ErasureLine(problem={"code": error.code, "title": error.message, "hint": error.hint})
            yield told.model_dump_json(exclude_none=True).encode() + b"\n"

    return StreamingResponse(lines(), media_type=NDJSON)


@erasures.get("/retention", response_model=Retention, tags=["tenant"])
async def read_retention(request: Request) -> Response:
    """How long the tenant's units and events stay, by kind."""
    scope = await scope_of(request, Action.MANAGE_RETENTION)
    return as_json(await lastro_of(request).retention.show(scope))


@erasures.put("/retention", response_model=Retention, openapi_extra=body_of(Retention), tags=["tenant"])
async def set_retention(request: Request, reason: Reason = None) -> Response:
    """Put these rules in the place of those before."""
    scope = await scope_of(request, Action.MANAGE_RETENTION)
    rules = parse(Retention, await body(request))
    return as_json(await lastro_of(request).retention.set(scope, rules, reason_of(reason)))


@erasures.post("/retention/run", response_model=RetentionReport, openapi_extra=body_of(RetentionRun), tags=["tenant"])
async def run_retention(request: Request) -> Response:
    """Apply the rules now, or count what that would erase. What takes too long for a request is left to the background job."""
    scope = await scope_of(request, Action.MANAGE_RETENTION)
    asked = parse(RetentionRun, await body(request))
    ends = monotonic() + REQUEST_S

    async def in_time() -> bool:
        return monotonic() < ends

    return as_json(await lastro_of(request).retention.run(scope, dry_run=asked.dry_run, between=in_time))
