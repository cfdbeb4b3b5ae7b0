"""Quotas and usage over HTTP: set by admins of a tenant, usage read by them and by analysts, and by everybody what concerns them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from app.api.documentation import body_of
from app.api.routes import PAGE_MOST, Reason, as_json, body, id_of, lastro_of, number, scope_of, time_of
from app.governance.quota_operations import TenantQuotas, usage_csv
from app.registry.permissions import Action
from graph.model.audit import reason_of
from graph.model.base import parse
from graph.model.errors import InvalidField
from graph.model.quota import QuotaLimits, QuotaList, QuotaView, Span, Subject, SubjectType, UsagePage, UsageQuery

quotas = APIRouter(prefix="/v1/quotas", tags=["quotas"])
usage = APIRouter(prefix="/v1/usage", tags=["usage"])


async def _door(request: Request, action: Action) -> TenantQuotas:
    lastro = lastro_of(request)
    return TenantQuotas(lastro.quota_store, lastro.quotas, lastro.meter, await scope_of(request, action))


@quotas.get("", response_model=QuotaList)
async def list_quotas(request: Request) -> Response:
    """The tenant's quotas, with what is used and what remains."""
    return as_json(await (await _door(request, Action.MANAGE_QUOTAS)).list_quotas())


@quotas.put("/{subject_type}/{subject_id:path}", response_model=QuotaView, openapi_extra=body_of(QuotaLimits))
async def set_quota(request: Request, subject_type: str, subject_id: str, reason: Reason = None) -> Response:
    """Set all limits of a tenant, agent, session or team; what is left out is not limited. Holds within a second on every replica."""
    door = await _door(request, Action.MANAGE_QUOTAS)
    limits = parse(QuotaLimits, await body(request))
    return as_json(await door.set_quota(_subject(subject_type, subject_id), limits, reason=reason_of(reason)))


@quotas.delete("/{subject_type}/{subject_id:path}", status_code=204)
async def remove_quota(request: Request, subject_type: str, subject_id: str, reason: Reason = None) -> Response:
    """Remove all limits of a tenant, agent, session or team. What is counted stays."""
    door = await _door(request, Action.MANAGE_QUOTAS)
    await door.remove_quota(_subject(subject_type, subject_id), reason=reason_of(reason))
    return Response(status_code=204)


@usage.get("", response_model=UsagePage, responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}})
async def read_usage(
    request: Request,
    subject_type: Annotated[str | None, Query(description="Only tenant, agent, session or team.")] = None,
    subject_id: Annotated[str | None, Query(description="Only this one; needs its type.")] = None,
    since: Annotated[str | None, Query(description="What was done from the hour of this time on (RFC 3339).")] = None,
    until: Annotated[str | None, Query(description="What was done before the hour of this time (RFC 3339).")] = None,
    by: Annotated[str, Query(description="Summed over the whole time (total), or by day or hour (UTC).")] = "total",
    limit: Annotated[str, Query(description=f"Subjects in a page, 1 to {PAGE_MOST}.")] = "50",
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
    format: Annotated[str, Query(description="json, or csv for all pages in one file.")] = "json",
) -> Response:
    """What the tenant, its agents, sessions and teams store, and what they read and wrote."""
    door = await _door(request, Action.READ_USAGE)
    query = UsageQuery(
        subject_type=None if subject_type is None else _subject_type(subject_type),
        subject_id=None if subject_id is None else id_of(subject_id, "subject_id"),
        since=time_of(since, "since"),
        until=time_of(until, "until"),
        by=_span(by),
    )
    if format not in {"json", "csv"}:
        raise InvalidField("format is json or csv.").at(field="format")
    page = await door.usage(query, limit=number(limit, "limit", PAGE_MOST), cursor=cursor)
    if format == "json":
        return as_json(page)
    # The first page was read for what can be refused: once a stream has begun, nothing can.
    return StreamingResponse(usage_csv(door, query), media_type="text/csv; charset=utf-8; header=present")


@usage.get("/me", response_model=QuotaList)
async def read_own_usage(request: Request) -> Response:
    """The quotas that hold for the caller (its tenant, agent, session and teams) with what remains of them."""
    return as_json(await (await _door(request, Action.READ_OWN_USAGE)).own_quotas())


def _subject(subject_type: str, subject_id: str) -> Subject:
    return Subject(_subject_type(subject_type), id_of(subject_id, "subject_id"))


def _subject_type(text: str) -> SubjectType:
    try:
        return SubjectType(text)
    except ValueError:
        raise InvalidField("A subject is a tenant, agent, session or team.").at(field="subject_type") from None


def _span(text: str) -> Span:
    try:
        return Span(text)
    except ValueError:
        raise InvalidField("by is total, day or hour.").at(field="by") from None
