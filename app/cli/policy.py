"""`lastro policy` and `lastro team`: what opens units to others, on the store itself or through a running service with an admin's key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import typer
from pydantic import ValidationError

from app.bootstrap import Lastro
from app.cli import options, output
from app.cli.access import Target
from app.cli.governed import NOWHERE, Tenant, governing
from app.cli.keys import ends
from app.registry.policy_operations import PolicyOperations, RegistryPolicies, template, templates
from app.registry.registry import Credential
from graph.model.audit import reason_of
from graph.model.base import as_domain_error
from graph.model.errors import CommandRefused
from graph.model.policy import Among, Party, Policy, PolicyRequest, Team
from graph.model.scope import AuthorizedScope, Role
from graph.model.units import Kind, Scope

Result = TypeVar("Result")

app = typer.Typer(
    no_args_is_help=True,
    help="Open units to others than the agent and session that wrote them; see what is open, and why.",
    epilog="Examples:  lastro policy create --tenant acme --template across-sessions   |   lastro policy explain --tenant acme u-7 --agent triage",
)
teams = typer.Typer(no_args_is_help=True, help="Teams of agents, which policies and quotas name.")


@app.command("templates", epilog="Examples:  lastro policy templates")
def list_templates(as_json: options.Json = False) -> None:
    """Show the policies to begin with."""
    if as_json:
        output.print_json(templates())
        return
    for item in templates().templates:
        output.out.print(item.name, style="bold", markup=False)
        output.out.print(f"  {item.about}", markup=False)
        output.out.print(f"  kinds: {', '.join(item.policy.kinds)}; among: {item.policy.among}", markup=False)


@app.command(epilog="Examples:  lastro policy create --tenant acme --kind decision --from-agent triage --to-agent fixer --expires 30d")
def create(
    tenant: Tenant = None,
    from_template: Annotated[str | None, typer.Option("--template", help="Begin with one of `lastro policy templates`.")] = None,
    kind: Annotated[list[Kind] | None, typer.Option(help="Kind of unit that it opens; repeat for more.", show_default=False)] = None,
    from_agent: Annotated[list[str] | None, typer.Option(help="Whose units; all agents' when left out.", show_default=False)] = None,
    from_team: Annotated[list[str] | None, typer.Option(help="Whose units, by team.", show_default=False)] = None,
    from_session: Annotated[list[str] | None, typer.Option(help="Units of which sessions.", show_default=False)] = None,
    to_agent: Annotated[list[str] | None, typer.Option(help="Who may read; all agents when left out.", show_default=False)] = None,
    to_team: Annotated[list[str] | None, typer.Option(help="Who may read, by team.", show_default=False)] = None,
    to_session: Annotated[list[str] | None, typer.Option(help="In which sessions.", show_default=False)] = None,
    among: Annotated[Among | None, typer.Option(help="any, or the same agent, team or session on both sides.", show_default=False)] = None,
    organization: Annotated[str | None, typer.Option(help="Organisation whose units it opens to others.", show_default=False)] = None,
    assessment: Annotated[str | None, typer.Option(help="Assessment whose units it opens to others.", show_default=False)] = None,
    to_organization: Annotated[str | None, typer.Option(help="Organisation that the reader must be in.", show_default=False)] = None,
    to_assessment: Annotated[str | None, typer.Option(help="Assessment that the reader must be in.", show_default=False)] = None,
    expires: Annotated[
        str | None, typer.Option(help="How long it holds: 12h, 30d, 4w. For ever when left out.", show_default=False)
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why; required when it opens another place.", show_default=False)] = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Put a policy in force."""
    base = template(from_template).policy if from_template is not None else None
    if base is None and not kind:
        raise CommandRefused("A policy needs kinds.", hint="Name them by --kind, or begin with --template.")
    body = {
        "kinds": kind or (base.kinds if base else []),
        "from": Party(agents=from_agent or [], teams=from_team or [], sessions=from_session or []),
        "to": Party(agents=to_agent or [], teams=to_team or [], sessions=to_session or []),
        "among": among or (base.among if base else Among.ANY),
        "scope": Scope(organization_id=organization, assessment_id=assessment),
        "to_scope": Scope(organization_id=to_organization, assessment_id=to_assessment),
        "expires_at": ends(expires),
        "reason": reason,
    }
    try:
        asked = PolicyRequest.model_validate(body)
    except ValidationError as failure:
        raise as_domain_error(failure) from None
    made: Policy = _run(lambda door: door.create_policy(asked), Target(url, key, engine, data), tenant)
    if as_json:
        output.print_json(made)
    else:
        output.err.print(f"Policy {made.id} is in force.", markup=False)


@app.command("list", epilog="Examples:  lastro policy list --tenant acme")
def list_(
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """List a tenant's policies, newest first."""
    found = _run(lambda door: door.list_policies(), Target(url, key, engine, data), tenant)
    if as_json:
        output.print_json(found)
        return
    output.table(
        ["id", "state", "kinds", "from", "to", "among", "where"],
        [
            (
                item.id,
                _state(item),
                ", ".join(item.kinds),
                _party(item.source),
                _party(item.to),
                item.among,
                _place(item.scope) + (f" to {_place(item.to_scope)}" if item.to_scope != Scope() else ""),
            )
            for item in found.policies
        ],
    )


@app.command(epilog="Examples:  lastro policy revoke --tenant acme 0123456789abcdef --reason 'the project is over'")
def revoke(
    policy_id: Annotated[str, typer.Argument(help="Id of the policy, as `lastro policy list` shows it.")],
    tenant: Tenant = None,
    reason: Annotated[str | None, typer.Option(help="Why; kept in the audit trail.", show_default=False)] = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """End a policy. What it opened is closed at once."""
    _run(lambda door: door.revoke_policy(policy_id, reason_of(reason)), Target(url, key, engine, data), tenant)
    if as_json:
        output.print_json({"id": policy_id, "revoked": True})
    else:
        output.err.print(f"Policy {policy_id} is revoked.", markup=False)


@app.command(epilog="Examples:  lastro policy explain --tenant acme u-7 --agent triage --session s1")
def explain(
    unit_id: Annotated[str, typer.Argument(help="Id of the unit.")],
    agent: Annotated[str, typer.Option(help="The reader.")],
    tenant: Tenant = None,
    session: Annotated[str | None, typer.Option(help="Session that the reader is in.", show_default=False)] = None,
    organization: Annotated[str | None, typer.Option(help="Organisation that the reader is in.", show_default=False)] = None,
    assessment: Annotated[str | None, typer.Option(help="Assessment that the reader is in.", show_default=False)] = None,
    role: Annotated[Role, typer.Option(help="Role of the reader.")] = Role.AGENT,
    unit_organization: Annotated[
        str | None, typer.Option(help="Organisation that the unit is in; the reader's when left out.", show_default=False)
    ] = None,
    unit_assessment: Annotated[
        str | None, typer.Option(help="Assessment that the unit is in; the reader's when both are left out.", show_default=False)
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Say why a reader can see a unit, or cannot."""
    place = Scope(organization_id=organization, assessment_id=assessment)
    of_unit = (unit_organization, unit_assessment) if unit_organization is not None else (organization, assessment)
    found = _run(
        lambda door: door.explain(unit_id, agent, session, place, role),
        Target(url, key, engine, data),
        tenant,
        Credential(organization_id=of_unit[0], assessment_id=of_unit[1]),
    )
    if as_json:
        output.print_json(found)
        return
    output.out.print(f"{agent} {'can' if found.visible else 'cannot'} see {unit_id}.", markup=False)
    output.table(
        ["rule", "opens", "why"],
        [
            (item.rule if item.policy_id is None else f"policy {item.policy_id}", "yes" if item.opens else "no", item.why)
            for item in found.rules
        ],
        wrap_last=True,
    )


@teams.command("set", epilog="Examples:  lastro team set --tenant acme operations --agent triage --agent fixer")
def set_team(
    team_id: Annotated[str, typer.Argument(help="Name of the team.")],
    agent: Annotated[list[str], typer.Option(help="Who is in it; repeat for more.")],
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Make a team, or say anew who is in it."""
    try:
        team = Team(id=team_id, agents=agent)
    except ValidationError as failure:
        raise as_domain_error(failure) from None
    saved = _run(lambda door: door.save_team(team), Target(url, key, engine, data), tenant)
    if as_json:
        output.print_json(saved)
    else:
        output.err.print(f"Team {saved.id} has {len(set(saved.agents))} agents.", markup=False)


@teams.command("list", epilog="Examples:  lastro team list --tenant acme")
def list_teams(
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """List the tenant's teams."""
    found = _run(lambda door: door.list_teams(), Target(url, key, engine, data), tenant)
    if as_json:
        output.print_json(found)
    else:
        output.table(["team", "agents"], [(item.id, ", ".join(item.agents)) for item in found.teams])


@teams.command("remove", epilog="Examples:  lastro team remove --tenant acme operations")
def remove_team(
    team_id: Annotated[str, typer.Argument(help="Name of the team.")],
    tenant: Tenant = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Take a team away. Policies that name it open nothing by it any more."""
    _run(lambda door: door.remove_team(team_id), Target(url, key, engine, data), tenant)
    if as_json:
        output.print_json({"id": team_id, "removed": True})
    else:
        output.err.print(f"Team {team_id} is removed.", markup=False)


def _state(policy: Policy) -> str:
    if policy.revoked_at is not None:
        return "revoked"
    return "expired" if policy.expires_at is not None and policy.expires_at <= datetime.now(UTC) else "in force"


def _party(party: Party) -> str:
    told = [*party.agents, *(f"team {team}" for team in party.teams), *(f"session {session}" for session in party.sessions)]
    return ", ".join(told) or "all"


def _place(scope: Scope) -> str:
    return "/".join(part for part in (scope.organization_id, scope.assessment_id) if part) or "the reader's place"


def _run(work: Callable[[PolicyOperations], Awaitable[Result]], target: Target, tenant: str | None, place: Credential = NOWHERE) -> Result:
    def local(lastro: Lastro, scope: AuthorizedScope) -> PolicyOperations:
        return RegistryPolicies(lastro.registry, lastro.policies, lastro.units, scope)

    return governing(work, target, tenant, local, place=place)
