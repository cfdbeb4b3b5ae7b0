"""`lastro audit`: who did what to a tenant, and why."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from app.bootstrap import Lastro
from app.cli import options, output
from app.cli.access import Target
from app.cli.governed import Tenant, governing, moment
from app.governance.audit_operations import AuditOperations, TenantAudit
from graph.model.audit import AuditAction, AuditPage, AuditQuery
from graph.model.errors import CommandRefused
from graph.model.scope import AuthorizedScope

Result = TypeVar("Result")

EXAMPLES = "Examples:  lastro audit   |   lastro audit --action key_created --since 7d   |   lastro audit --export audit.ndjson"


def audit(
    action: Annotated[list[AuditAction] | None, typer.Option(help="Only this action; may be repeated.", show_default=False)] = None,
    since: Annotated[str | None, typer.Option(help="From this time on: RFC 3339, or how long ago (7d).", show_default=False)] = None,
    until: Annotated[str | None, typer.Option(help="Before this time.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Events in a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="`next` of the page before.", show_default=False)] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Write all events to this file as NDJSON; nothing stands there before all of it does.", show_default=False),
    ] = None,
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Show the audit trail of a tenant, newest first. Nothing changes it."""
    target = Target(url, key, engine, data)
    query = AuditQuery(tuple(action or ()), moment(since, "--since"), moment(until, "--until"))
    if export is not None:
        number = _export(query, target, tenant, export, quiet=as_json)
        if as_json:
            output.print_json({"file": str(export), "events": number})
        else:
            output.err.print(f"{number} events are in {export}.", markup=False, soft_wrap=True)
        return
    page: AuditPage = _run(lambda door: door.audit(query, limit=limit, cursor=cursor), target, tenant)
    if as_json:
        output.print_json(page)
        return
    output.table(
        ["when", "action", "who", "target", "reason"],
        [(f"{event.at:%Y-%m-%d %H:%M:%S}", event.action, event.agent_id, event.target, event.reason or "") for event in page.events],
    )
    if page.next is not None:
        output.err.print(f"There may be more: --cursor {page.next}", markup=False, soft_wrap=True)


def _export(query: AuditQuery, target: Target, tenant: str | None, file: Path, *, quiet: bool) -> int:
    """Number of events written."""
    draft = file.with_name(f"{file.name}.draft")

    async def work(door: AuditOperations) -> int:
        number = 0
        with output.progress() as bar, draft.open("w", encoding="utf-8") as out:
            task = bar.add_task("exporting", total=None, visible=not quiet)
            async for event in door.export_audit(query):
                out.write(event.model_dump_json() + "\n")
                number += 1
                bar.update(task, completed=number, description=f"{number} events")
        return number

    try:
        number = _run(work, target, tenant)
        draft.replace(file)
    except OSError:
        raise CommandRefused("The file cannot be written.", hint="Check the path of --export, and the room that is left.") from None
    finally:
        draft.unlink(missing_ok=True)
    return number


def _run(work: Callable[[AuditOperations], Awaitable[Result]], target: Target, tenant: str | None) -> Result:
    return governing(work, target, tenant, _local)


def _local(lastro: Lastro, scope: AuthorizedScope) -> AuditOperations:
    return TenantAudit(lastro.audit, scope)
