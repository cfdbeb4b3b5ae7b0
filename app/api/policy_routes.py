"""Policies and teams over HTTP, for admins of a tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.documentation import body_of
from app.api.routes import Reason, as_json, body, id_of, lastro_of, scope_of
from app.registry.permissions import Action
from app.registry.policy_operations import RegistryPolicies, templates
from graph.model.audit import reason_of
from graph.model.base import parse
from graph.model.errors import InvalidField
from graph.model.policy import Explanation, Policy, PolicyList, PolicyRequest, Team, TeamList, TemplateList
from graph.model.scope import Role
from graph.model.units import Scope

policies = APIRouter(prefix="/v1", tags=["policies"])


@policies.post("/policies", status_code=201, response_model=Policy, openapi_extra=body_of(PolicyRequest))
async def create_policy(request: Request) -> Response:
    """Open kinds of units to others than the agent and session that wrote them. It holds at once, on every replica."""
    door = await _door(request)
    return as_json(await door.create_policy(parse(PolicyRequest, await body(request))), status=201)


@policies.get("/policies", response_model=PolicyList)
async def list_policies(request: Request) -> Response:
    """The tenant's policies, newest first; those that were revoked or have ended too."""
    return as_json(await (await _door(request)).list_policies())


@policies.get("/policies/templates", response_model=TemplateList)
async def list_templates(request: Request) -> Response:
    """Policies to begin with: send one's `policy` to POST /v1/policies."""
    await scope_of(request, Action.MANAGE_POLICIES)
    return as_json(templates())


@policies.get("/policies/explain", response_model=Explanation)
async def explain_policy(
    request: Request,
    unit_id: Annotated[str, Query(description="The unit; required.")] = "",
    agent_id: Annotated[str, Query(description="The reader; required.")] = "",
    session_id: Annotated[str | None, Query(description="The reader's session, if it names one.")] = None,
    organization_id: Annotated[str | None, Query(description="Organisation that the reader is in.")] = None,
    assessment_id: Annotated[str | None, Query(description="Assessment that the reader is in.")] = None,
    role: Annotated[str, Query(description="The reader's role.")] = "agent",
) -> Response:
    """Why a reader can or cannot see a unit. The unit is looked for where the request is (Lastro-Organization, Lastro-Assessment)."""
    door = await _door(request)
    named = {"session_id": session_id, "organization_id": organization_id, "assessment_id": assessment_id}
    checked = {name: id_of(value, name) if value else None for name, value in named.items()}
    if role not in set(Role):
        raise InvalidField(f"role is one of {', '.join(Role)}.").at(field="role")
    if checked["assessment_id"] is not None and checked["organization_id"] is None:
        raise InvalidField("An assessment is one of an organisation; name that too.").at(field="organization_id")
    place = Scope(organization_id=checked["organization_id"], assessment_id=checked["assessment_id"])
    found = await door.explain(id_of(unit_id, "unit_id"), id_of(agent_id, "agent_id"), checked["session_id"], place, Role(role))
    return as_json(found)


@policies.delete("/policies/{policy_id}", status_code=204)
async def revoke_policy(request: Request, policy_id: str, reason: Reason = None) -> Response:
    """End a policy. What it opened is closed at once, on every replica."""
    await (await _door(request)).revoke_policy(id_of(policy_id, "policy_id"), reason_of(reason))
    return Response(status_code=204)


@policies.get("/teams", response_model=TeamList)
async def list_teams(request: Request) -> Response:
    """The tenant's teams and who is in them."""
    return as_json(await (await _door(request)).list_teams())


@policies.put("/teams", response_model=Team, openapi_extra=body_of(Team))
async def save_team(request: Request) -> Response:
    """Make a team, or say anew who is in it."""
    door = await _door(request)
    return as_json(await door.save_team(parse(Team, await body(request))))


@policies.delete("/teams/{team_id:path}", status_code=204)
async def remove_team(request: Request, team_id: str) -> Response:
    """Take a team away. Policies that name it open nothing by it any more."""
    await (await _door(request)).remove_team(id_of(team_id, "team_id"))
    return Response(status_code=204)


async def _door(request: Request) -> RegistryPolicies:
    lastro = lastro_of(request)
    return RegistryPolicies(lastro.registry, lastro.policies, lastro.units, await scope_of(request, Action.MANAGE_POLICIES))
