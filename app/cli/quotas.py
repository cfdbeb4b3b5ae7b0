"""`lastro quotas` and `lastro usage`: limits of a tenant's agents, sessions and teams, and what they use."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer
from pydantic import ValidationError

from app.bootstrap import Lastro
from app.cli import options, output
from app.cli.access import Target
from app.cli.governed import Tenant, governing, moment, seconds
from app.governance.quota_operations import QuotaOperations, TenantQuotas, usage_csv
from graph.model.audit import reason_of
from graph.model.base import as_domain_error, check_id
from graph.model.errors import CommandRefused, InvalidId
from graph.model.quota import QuotaLimits, QuotaList, QuotaView, Span, Subject, SubjectType, UsagePage, UsageQuery, UsageRow
from graph.model.scope import AuthorizedScope

Result = TypeVar("Result")

app = typer.Typer(
    no_args_is_help=True,
    help="List, set and remove quotas of a tenant, its agents, sessions and teams; through a service with an admin's LASTRO_KEY.",
    epilog="Examples:  lastro quotas set agent triage --units 10000   |   lastro quotas list --tenant acme",
)

USAGE_EXAMPLES = "Examples:  lastro usage   |   lastro usage --type agent --since 7d --by day   |   lastro usage --csv > usage.csv   |   lastro usage --own"

Type = Annotated[SubjectType, typer.Argument(help="tenant, agent, session or team.")]
Identity = Annotated[str, typer.Argument(help="Its id.")]
Reason = Annotated[str | None, typer.Option(help="Why; kept in the audit trail.", show_default=False)]


@app.command("list", epilog="Examples:  lastro quotas list --tenant acme --json")
def list_(
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """List the tenant's quotas, with what remains of them."""
    _show_quotas(_run(lambda door: door.list_quotas(), Target(url, key, engine, data), tenant), as_json=as_json)


@app.command(
    "set", epilog="Examples:  lastro quotas set agent triage --units 10000   |   lastro quotas set tenant acme --requests 600 --window 1m"
)
def set_(
    subject_type: Type,
    subject_id: Identity,
    units: Annotated[int | None, typer.Option(help="Most units stored.", show_default=False)] = None,
    bytes: Annotated[int | None, typer.Option(help="Most bytes stored.", show_default=False)] = None,
    requests: Annotated[int | None, typer.Option(help="Most requests in a window.", show_default=False)] = None,
    tokens: Annotated[int | None, typer.Option(help="Most tokens read and written in a window.", show_default=False)] = None,
    window: Annotated[str | None, typer.Option(help="Length of a window: 30s, 15m, 1h, 1d.", show_default=False)] = None,
    reason: Reason = None,
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Set all limits of a tenant, agent, session or team. What is left out is not limited."""
    told = {"units": units, "bytes": bytes, "requests": requests, "tokens": tokens}
    told["window_s"] = None if window is None else seconds(window, "--window")
    try:
        limits = QuotaLimits.model_validate(told)
    except ValidationError as failure:
        raise as_domain_error(failure) from None
    subject, why = _subject(subject_type, subject_id), reason_of(reason)
    made: QuotaView = _run(lambda door: door.set_quota(subject, limits, reason=why), Target(url, key, engine, data), tenant)
    if as_json:
        output.print_json(made)
    else:
        _show_quotas(QuotaList(quotas=[made]), as_json=False)


@app.command(epilog="Examples:  lastro quotas remove agent triage --reason 'the trial is over'")
def remove(
    subject_type: Type,
    subject_id: Identity,
    reason: Reason = None,
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Remove all limits of a tenant, agent, session or team. What is counted stays."""
    subject, why = _subject(subject_type, subject_id), reason_of(reason)
    _run(lambda door: door.remove_quota(subject, reason=why), Target(url, key, engine, data), tenant)
    if as_json:
        output.print_json({"subject_type": subject.type, "subject_id": subject.id, "removed": True})
    else:
        output.err.print(f"The quota of {subject.type} {subject.id} is removed.", markup=False)


def usage(
    subject_type: Annotated[
        SubjectType | None, typer.Option("--type", help="Only the tenant, agents, sessions or teams.", show_default=False)
    ] = None,
    subject_id: Annotated[str | None, typer.Option("--id", help="Only this one; needs --type.", show_default=False)] = None,
    since: Annotated[str | None, typer.Option(help="From this time on: RFC 3339, or how long ago (7d).", show_default=False)] = None,
    until: Annotated[str | None, typer.Option(help="Before this time.", show_default=False)] = None,
    by: Annotated[Span, typer.Option(help="Sum over the whole time, or by day or hour.")] = Span.TOTAL,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Subjects in a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="`next` of the page before.", show_default=False)] = None,
    own: Annotated[bool, typer.Option("--own", help="The quotas that hold for this key, with what remains.")] = False,
    as_text: Annotated[bool, typer.Option("--csv", help="All pages as CSV on standard output.")] = False,
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Show what a tenant, its agents, sessions and teams store, read and write."""
    target = Target(url, key, engine, data)
    if as_text and as_json:
        raise CommandRefused("--csv and --json are two forms of one answer.", hint="Give one of them.")
    if subject_id is not None and subject_type is None:
        raise CommandRefused("--id needs --type.", hint="For example --type agent --id triage")
    if own:
        _show_quotas(_run(lambda door: door.own_quotas(), target, tenant), as_json=as_json)
        return
    query = UsageQuery(subject_type, subject_id, moment(since, "--since"), moment(until, "--until"), by)
    if as_text:
        _run(lambda door: _write_csv(door, query), target, tenant)
        return
    page: UsagePage = _run(lambda door: door.usage(query, limit=limit, cursor=cursor), target, tenant)
    if as_json:
        output.print_json(page)
        return
    timed = by is not Span.TOTAL
    output.table(
        ["id", "type", *(["from"] if timed else []), "units", "bytes", "reads", "writes", "tokens read", "written"],
        [_cells(row, timed=timed) for row in page.rows],
        right=range(3 if timed else 2, 9 if timed else 8),
    )
    if page.next is not None:
        output.err.print(f"There may be more: --cursor {page.next}", markup=False, soft_wrap=True)


async def _write_csv(door: QuotaOperations, query: UsageQuery) -> None:
    async for text in usage_csv(door, query):
        sys.stdout.write(text)


def _cells(row: UsageRow, *, timed: bool) -> list[object]:
    starts = [] if not timed or row.starts_at is None else [f"{row.starts_at:%Y-%m-%d %H:%M}"]
    return [
        row.subject_id,
        row.subject_type,
        *starts,
        row.units,
        row.bytes,
        row.reads,
        row.writes,
        row.tokens_read,
        row.tokens_written,
    ]


def _show_quotas(found: QuotaList, *, as_json: bool) -> None:
    if as_json:
        output.print_json(found)
        return
    rows = [
        (
            view.subject_id,
            view.subject_type,
            name,
            used,
            allowed,
            f"each {view.limits.window_s} s" if name in {"requests", "tokens"} else "",
        )
        for view in found.quotas
        for name, used, allowed in _numbers(view)
    ]
    output.table(["id", "type", "limit", "used", "allowed", ""], rows, right=(3, 4))
    if not rows:
        output.err.print("There are no quotas.")


def _numbers(view: QuotaView) -> list[tuple[str, int, int]]:
    used, allowed = view.used.model_dump(), view.limits.model_dump()
    return [(name, value, allowed[name]) for name, value in used.items() if value is not None]


def _subject(subject_type: SubjectType, subject_id: str) -> Subject:
    try:
        return Subject(subject_type, check_id(subject_id))
    except ValueError:
        raise InvalidId().at(field="subject_id") from None


def _run(work: Callable[[QuotaOperations], Awaitable[Result]], target: Target, tenant: str | None) -> Result:
    return governing(work, target, tenant, _local)


def _local(lastro: Lastro, scope: AuthorizedScope) -> QuotaOperations:
    return TenantQuotas(lastro.quota_store, lastro.quotas, lastro.meter, scope)
