"""`lastro erase` and `lastro retention`: on the store itself, or through a running service with LASTRO_URL and LASTRO_KEY."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer
from pydantic import ValidationError

from app.cli import options, output
from app.cli.access import Target
from app.cli.governed import NOWHERE, Tenant, governing
from app.governance.erasure_operations import ErasureOperations, LocalErasure
from app.registry.registry import Credential
from graph.model.audit import reason_of
from graph.model.base import as_domain_error, check_id
from graph.model.erasure import ErasureCertificate, ErasureProgress, Refuses, TenantErasure
from graph.model.errors import CommandRefused, InvalidId
from graph.model.retention import RetainedKind, Retention, RetentionReport, RetentionRule

Result = TypeVar("Result")

EXAMPLES = "Examples:  lastro erase UNIT --reason 'asked for by its subject'   |   lastro erase --tenant acme --yes"

Reason = Annotated[str | None, typer.Option(help="Why; kept in the audit trail.", show_default=False)]


def erase(
    unit_id: Annotated[
        str | None, typer.Argument(metavar="UNIT", help="Id of the unit; left out to erase a whole tenant.", show_default=False)
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(help="Tenant of the unit on the local store; without UNIT, the one to erase.", show_default=False),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Yes, erase the whole tenant.")] = False,
    refuse: Annotated[
        Refuses, typer.Option(help="What is refused from now on: its id and content (value), or its id alone (id).")
    ] = Refuses.VALUE,
    reason: Reason = None,
    organization: Annotated[str | None, typer.Option(help="Organisation that the unit is in.", show_default=False)] = None,
    assessment: Annotated[str | None, typer.Option(help="Assessment that the unit is in.", show_default=False)] = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Erase a unit, or everything of a tenant. It cannot be undone, and what was erased is refused if it comes again."""
    target = Target(url, key, engine, data)
    if unit_id is None:
        if tenant is None or not yes:
            raise CommandRefused("Name a unit; or, to erase a whole tenant, --tenant and --yes.", hint=EXAMPLES)
        _erase_tenant(target, tenant, reason, as_json=as_json)
        return
    if yes:
        raise CommandRefused("--yes is for a whole tenant, and a unit is named.", hint=EXAMPLES)
    try:
        wanted = check_id(unit_id)
    except ValueError:
        raise InvalidId().at(field="UNIT") from None
    place = Credential(organization_id=organization, assessment_id=assessment)
    tombstone = _run(lambda door: door.erase(wanted, reason=reason_of(reason), refuses=refuse), target, tenant, place)
    if as_json:
        output.print_json({"id": wanted, "erased": True, "tombstone": tombstone})
    else:
        output.err.print(f"Erased. The audit trail names it {tombstone}.", markup=False, soft_wrap=True)


def _erase_tenant(target: Target, tenant: str, reason: str | None, *, as_json: bool) -> None:
    try:
        asked = TenantErasure.model_validate({"tenant": tenant, "reason": reason})
    except ValidationError as failure:
        raise as_domain_error(failure) from None
    with output.progress() as bar:
        task = bar.add_task("erasing", total=None, visible=not as_json)

        def on_progress(progress: ErasureProgress) -> None:
            bar.update(task, completed=progress.nodes, description=f"{progress.nodes} nodes, {progress.edges} edges")

        certificate: ErasureCertificate = _run(
            lambda door: door.erase_tenant(asked, on_progress), target, None if target.remote else tenant
        )
    # The certificate is a document for others, whoever reads it here.
    output.print_json(certificate)


app = typer.Typer(
    no_args_is_help=True,
    help="How long a tenant's units and events stay.",
    epilog="Examples:  lastro retention set progress_note --days 30 --tenant acme   |   lastro retention run --dry-run --tenant acme",
)


@app.command(epilog="Examples:  lastro retention show --tenant acme")
def show(
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Show the rules. What has none stays for ever."""
    _tell(_run(lambda door: door.retention(), Target(url, key, engine, data), tenant), as_json=as_json)


@app.command("set", epilog="Examples:  lastro retention set event --days 400   |   lastro retention set progress_note --forever")
def set_(
    kind: Annotated[RetainedKind, typer.Argument(help="A kind of unit, or event.")],
    days: Annotated[int | None, typer.Option(help="Days since it was recorded.", show_default=False)] = None,
    forever: Annotated[bool, typer.Option("--forever", help="Take the rule away.")] = False,
    authority: Annotated[
        bool, typer.Option("--authority", help="Also units of trust normative or approved_artifact, which stay otherwise.")
    ] = False,
    reason: Reason = None,
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Set or take away the rule of one kind. The next run applies it."""
    if (days is None) != forever:
        raise CommandRefused("Say --days or --forever.", hint="For example --days 90")
    try:
        rule = None if days is None else RetentionRule(kind=kind, days=days, authority=authority)
    except ValidationError as failure:
        raise as_domain_error(failure) from None

    async def work(door: ErasureOperations) -> Retention:
        others = [known for known in (await door.retention()).rules if known.kind is not kind]
        return await door.set_retention(Retention(rules=others if rule is None else [*others, rule]), reason=reason_of(reason))

    _tell(_run(work, Target(url, key, engine, data), tenant), as_json=as_json)


@app.command(epilog="Examples:  lastro retention run --dry-run --tenant acme")
def run(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be erased.")] = False,
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Erase what is over its time, now."""
    report: RetentionReport = _run(lambda door: door.run_retention(dry_run=dry_run), Target(url, key, engine, data), tenant)
    if as_json:
        output.print_json(report)
        return
    output.table(["kind", "would be erased" if dry_run else "erased"], sorted(report.erased.items()), right=(1,))
    if not report.erased:
        output.err.print("Nothing is over its time.")
    if not report.complete:
        output.err.print("There is more; the service goes on with it.")


def _tell(rules: Retention, *, as_json: bool) -> None:
    if as_json:
        output.print_json(rules)
        return
    told = [(rule.kind, rule.days, "all" if rule.authority else "all but normative and approved") for rule in rules.rules]
    output.table(["kind", "days", "which"], told, right=(1,))
    if not told:
        output.err.print("There are no rules: everything stays.")


def _run(work: Callable[[ErasureOperations], Awaitable[Result]], target: Target, tenant: str | None, place: Credential = NOWHERE) -> Result:
    # A tenant that is gone has a certificate still.
    return governing(
        work,
        target,
        tenant,
        lambda lastro, scope: LocalErasure(lastro.erasure, lastro.retention, scope),
        place=place,
        of_known_tenant=False,
    )
