"""`lastro ledger`: what context answers cost, by agent, session, task, model and time."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from app.bootstrap import Lastro
from app.cli import options, output
from app.cli.access import Target
from app.cli.governed import Tenant, governing, moment
from app.governance.exports import as_lines
from app.governance.ledger_operations import LedgerOperations, TenantLedger, ledger_csv, ledger_rows
from graph.model.errors import CommandRefused
from graph.model.ledger import DEFAULT_GROUPS, LedgerGroup, LedgerPage, LedgerQuery, LedgerRow
from graph.model.scope import AuthorizedScope

EXAMPLES = (
    "Examples:  lastro ledger   |   lastro ledger --from 7d --by task --by day   |   lastro ledger --by agent --csv > cost.csv   |   "
    "lastro ledger --task incident-4711 --by model"
)
NAMES = {LedgerGroup.AGENT: "agent_id", LedgerGroup.SESSION: "session_id", LedgerGroup.TASK: "task_id", LedgerGroup.MODEL: "model"}
NUMBERS = {
    "answers": "answers",
    "hits": "cache_hits",
    "asked": "tokens_asked",
    "spent": "tokens_spent",
    "left out": "tokens_left_out",
}


def ledger(
    since: Annotated[
        str | None, typer.Option("--from", help="From this time on: RFC 3339, or how long ago (7d).", show_default=False)
    ] = None,
    until: Annotated[str | None, typer.Option("--to", help="Before this time.", show_default=False)] = None,
    by: Annotated[
        list[LedgerGroup] | None,
        typer.Option(help="Keep rows apart by it; may be given more than once.  [default: agent, task, model]", show_default=False),
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent.", show_default=False)] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.", show_default=False)] = None,
    model: Annotated[str | None, typer.Option(help="Only this model.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Rows in a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="`next` of the page before.", show_default=False)] = None,
    as_text: Annotated[bool, typer.Option("--csv", help="All pages as CSV on standard output.")] = False,
    as_lines: Annotated[bool, typer.Option("--ndjson", help="All pages as NDJSON on standard output.")] = False,
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Show what context answers cost: tokens asked for, spent, and left out for want of budget."""
    target = Target(url, key, engine, data)
    if as_text + as_lines + as_json > 1:
        raise CommandRefused("--csv, --ndjson and --json are forms of one answer.", hint="Give one of them.")
    groups = tuple(dict.fromkeys(by or DEFAULT_GROUPS))
    query = LedgerQuery(moment(since, "--from"), moment(until, "--to"), groups, agent, task, model)
    if as_text or as_lines:
        governing(lambda door: _write(door, query, csv=as_text), target, tenant, _local)
        return
    page: LedgerPage = governing(lambda door: door.ledger(query, limit=limit, cursor=cursor), target, tenant, _local)
    if as_json:
        output.print_json(page)
        return
    names = [group for group in groups if group in NAMES]
    timed = query.hours > 0
    first = len(names) + timed
    columns = [*(["from"] if timed else []), *names, *NUMBERS]
    output.table(columns, [_cells(row, names, timed=timed) for row in page.rows], right=range(first, first + len(NUMBERS)))
    if page.next is not None:
        output.err.print(f"There may be more: --cursor {page.next}", markup=False, soft_wrap=True)


async def _write(door: LedgerOperations, query: LedgerQuery, *, csv: bool) -> None:
    rows = ledger_rows(door, query)
    async for text in ledger_csv(rows) if csv else as_lines(rows):
        sys.stdout.write(text)


def _cells(row: LedgerRow, names: list[LedgerGroup], *, timed: bool) -> list[object]:
    starts = [f"{row.starts_at:%Y-%m-%d %H:%M}"] if timed and row.starts_at is not None else []
    return [*starts, *(getattr(row, NAMES[group]) or "-" for group in names), *(getattr(row, name) for name in NUMBERS.values())]


def _local(lastro: Lastro, scope: AuthorizedScope) -> LedgerOperations:
    return TenantLedger(lastro.ledger_store, lastro.ledger, scope)
