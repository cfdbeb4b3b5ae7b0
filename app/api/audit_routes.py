"""The audit trail over HTTP, for admins of a tenant. It is read and exported; no address changes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from app.api.documentation import schema_of
from app.api.routes import PAGE_MOST, as_json, lastro_of, number, scope_of, time_of
from app.governance.audit_operations import TenantAudit
from app.registry.permissions import Action
from graph.model.audit import AuditAction, AuditEvent, AuditPage, AuditQuery
from graph.model.errors import InvalidField

audit = APIRouter(prefix="/v1/audit", tags=["audit"])

EVENTS_IN_CHUNK = 200

Actions = Annotated[list[str] | None, Query(description="Only this action; may be given more than once.")]
Since = Annotated[str | None, Query(description="From this time on (RFC 3339).")]
Until = Annotated[str | None, Query(description="Before this time (RFC 3339).")]


@audit.get("", response_model=AuditPage)
async def read_audit(
    request: Request,
    action: Actions = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[str, Query(description=f"Events in a page, 1 to {PAGE_MOST}.")] = "50",
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
) -> Response:
    """A page of what was done to the tenant's keys, policies, quotas and data: by whom, when and why; newest first."""
    door = TenantAudit(lastro_of(request).audit, await scope_of(request, Action.READ_AUDIT))
    return as_json(await door.audit(_query(action, since, until), limit=number(limit, "limit", PAGE_MOST), cursor=cursor))


@audit.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"description": "One event a line.", "content": {"application/x-ndjson": {"schema": schema_of(AuditEvent)}}}},
)
async def export_audit(request: Request, action: Actions = None, since: Since = None, until: Until = None) -> Response:
    """All events as NDJSON, newest first, streamed. An answer that breaks off is not whole."""
    door = TenantAudit(lastro_of(request).audit, await scope_of(request, Action.READ_AUDIT))
    return StreamingResponse(_lines(door, _query(action, since, until)), media_type="application/x-ndjson")


async def _lines(door: TenantAudit, query: AuditQuery) -> AsyncIterator[bytes]:
    waiting: list[str] = []
    async for event in door.export_audit(query):
        waiting.append(event.model_dump_json())
        if len(waiting) == EVENTS_IN_CHUNK:
            yield ("\n".join(waiting) + "\n").encode()
            waiting = []
    if waiting:
        yield ("\n".join(waiting) + "\n").encode()


def _query(action: list[str] | None, since: str | None, until: str | None) -> AuditQuery:
    known = {item.value: item for item in AuditAction}
    # No more are read than there are: a list of thousands is somebody's mistake.
    asked = list(islice(dict.fromkeys(action or ()), len(known) + 1))
    if not known.keys() >= set(asked):
        raise InvalidField("There is no such action.", hint=f"Actions: {', '.join(known)}.").at(field="action")
    return AuditQuery(tuple(known[name] for name in asked), time_of(since, "since"), time_of(until, "until"))
