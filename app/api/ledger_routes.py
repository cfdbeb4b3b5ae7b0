"""The token budget ledger over HTTP: admins see the tenant's, everybody else their own."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from app.api.routes import PAGE_MOST, as_json, id_of, lastro_of, number, scope_of, time_of
from app.governance.exports import as_lines
from app.governance.ledger_operations import EXPORT_PAGE, TenantLedger, ledger_csv, ledger_rows
from app.registry.permissions import Action
from graph.model.base import check_short_text
from graph.model.errors import InvalidField
from graph.model.ledger import DEFAULT_GROUPS, LedgerGroup, LedgerPage, LedgerQuery

ledger = APIRouter(prefix="/v1/ledger", tags=["ledger"])

FORMS = ("json", "csv", "ndjson")
LINES = {"application/x-ndjson": {"schema": {"type": "string"}}, "text/csv": {"schema": {"type": "string"}}}


@ledger.get("", response_model=LedgerPage, responses={200: {"content": LINES}})
async def read_ledger(
    request: Request,
    since: Annotated[str | None, Query(alias="from", description="Answers from the hour of this time on (RFC 3339).")] = None,
    until: Annotated[str | None, Query(alias="to", description="Answers before the hour of this time (RFC 3339).")] = None,
    group_by: Annotated[
        str, Query(description="What rows are kept apart by: agent, session, task, model, and hour or day (UTC); with commas.")
    ] = ",".join(DEFAULT_GROUPS),
    agent_id: Annotated[str | None, Query(description="Only this agent.")] = None,
    task_id: Annotated[str | None, Query(description="Only this task.")] = None,
    model: Annotated[str | None, Query(description="Only this model, as it was asked for.")] = None,
    limit: Annotated[str, Query(description=f"Rows in a page, 1 to {PAGE_MOST}.")] = "50",
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
    format: Annotated[str, Query(description="json, or csv or ndjson for all pages in one file.")] = "json",
) -> Response:
    """What context answers cost: tokens asked for, spent and left out, by agent, session, task, model and time."""
    lastro = lastro_of(request)
    door = TenantLedger(lastro.ledger_store, lastro.ledger, await scope_of(request, Action.READ_LEDGER))
    query = LedgerQuery(
        since=time_of(since, "from"),
        until=time_of(until, "to"),
        group_by=groups_of(group_by),
        agent_id=None if agent_id is None else id_of(agent_id, "agent_id"),
        task_id=None if task_id is None else id_of(task_id, "task_id"),
        model=None if model is None else _model_of(model),
    )
    if format not in FORMS:
        raise InvalidField("format is json, csv or ndjson.").at(field="format")
    page = await door.ledger(query, limit=number(limit, "limit", PAGE_MOST), cursor=cursor)
    if format == "json":
        return as_json(page)
    # The first page was read for what can be refused: once a stream has begun, nothing can.
    rows = ledger_rows(door, query, EXPORT_PAGE)
    if format == "csv":
        return StreamingResponse(ledger_csv(rows), media_type="text/csv; charset=utf-8; header=present")
    return StreamingResponse(as_lines(rows), media_type="application/x-ndjson")


def groups_of(text: str) -> tuple[LedgerGroup, ...]:
    """What rows are kept apart by, as it is named with commas; nothing, for one sum.

    Raises:
        InvalidField: one of them is not known.
    """
    # Read no further than there are names.
    named = [name.strip() for name in text.split(",", len(LedgerGroup)) if name.strip()]
    try:
        return tuple(dict.fromkeys(LedgerGroup(name) for name in named))
    except ValueError:
        raise InvalidField(
            "A row is kept apart by agent, session, task, model, hour or day.", hint="Names with commas: agent,task,day."
        ).at(field="group_by") from None


def _model_of(text: str) -> str:
    try:
        return check_short_text(text)
    except ValueError:
        raise InvalidField("The model is not the name of one.").at(field="model") from None
