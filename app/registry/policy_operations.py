"""Policies and teams of a tenant for every door: made, listed, ended, explained."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Protocol

from app.registry.grants import PUBLISHED, covers, is_for
from app.registry.registry import Registry
from graph.model.base import parse
from graph.model.errors import Forbidden, InvalidField
from graph.model.policy import (
    MAX_PAIRS,
    ExplainedRule,
    Explanation,
    Policy,
    PolicyList,
    PolicyRequest,
    Team,
    TeamList,
    Template,
    TemplateList,
)
from graph.model.scope import AuthorizedScope, Principal, Role, scope_key
from graph.model.units import ContextUnit, Scope
from graph.policy_store import PolicyStore
from graph.unit_store import UnitStore


class PolicyOperations(Protocol):
    """What an admin can do with the policies and teams of the tenant."""

    async def create_policy(self, asked: PolicyRequest) -> Policy: ...
    async def list_policies(self) -> PolicyList: ...
    async def revoke_policy(self, policy_id: str, reason: str | None) -> None: ...
    async def explain(self, unit_id: str, agent_id: str, session_id: str | None, place: Scope, role: Role) -> Explanation: ...
    async def list_teams(self) -> TeamList: ...
    async def save_team(self, team: Team) -> Team: ...
    async def remove_team(self, team_id: str) -> None: ...


@cache
def templates() -> TemplateList:
    """The policies that the service ships to begin with."""
    return parse(TemplateList, b'{"templates":' + files("app.registry").joinpath("templates.json").read_bytes() + b"}")


def template(name: str) -> Template:
    """One of them.

    Raises:
        InvalidField: there is none of that name; the hint lists them.
    """
    found = next((item for item in templates().templates if item.name == name), None)
    if found is None:
        raise InvalidField("There is no such template.", hint=f"Use one of {', '.join(item.name for item in templates().templates)}.")
    return found


class RegistryPolicies:
    """On a registry that this process runs, within a scope that may manage policies."""

    def __init__(self, registry: Registry, store: PolicyStore, units: UnitStore, scope: AuthorizedScope) -> None:
        """Raises Forbidden for a key that is bound to a part of the tenant: a policy reaches all of it."""
        if scope.principal.is_bound:
            raise Forbidden("A key that is bound to an organisation or assessment cannot manage policies.")
        self._registry = registry
        self._store = store
        self._units = units
        self._scope = scope

    async def create_policy(self, asked: PolicyRequest) -> Policy:
        """Put a policy in force, at once on every replica.

        Raises:
            InvalidField: it would already have ended.
            TooManyPolicies: the tenant has as many in force as it may have.
        """
        now = datetime.now(UTC)
        if asked.expires_at is not None and asked.expires_at <= now:
            raise InvalidField("The policy would already have ended.").at(field="expires_at")
        teams = {team.id: len(team.agents) for team in await self._store.teams(self._scope)} if asked.source.teams else {}
        writers = len(asked.source.agents) + sum(teams.get(team, 0) for team in asked.source.teams)
        if writers * len(asked.source.sessions) > MAX_PAIRS:
            raise InvalidField(
                f"The policy names more than {MAX_PAIRS} pairs of writers and sessions.",
                hint="Name fewer sessions, or all of them by none.",
            ).at(field="from")
        policy = Policy.model_construct(
            **{name: getattr(asked, name) for name in PolicyRequest.model_fields},
            id=secrets.token_hex(8),
            created_by=self._scope.principal.agent_id,
            created_at=now,
            revoked_at=None,
        )
        await self._store.create(self._scope, policy)
        return policy

    async def list_policies(self) -> PolicyList:
        return PolicyList.model_construct(policies=await self._store.policies(self._scope))

    async def revoke_policy(self, policy_id: str, reason: str | None) -> None:
        await self._store.revoke(self._scope, policy_id, datetime.now(UTC), reason)

    async def list_teams(self) -> TeamList:
        return TeamList.model_construct(teams=await self._store.teams(self._scope))

    async def save_team(self, team: Team) -> Team:
        await self._store.save_team(self._scope, team)
        return team

    async def remove_team(self, team_id: str) -> None:
        await self._store.remove_team(self._scope, team_id)

    async def explain(self, unit_id: str, agent_id: str, session_id: str | None, place: Scope, role: Role) -> Explanation:
        """Why a reader can or cannot see a unit: each rule that could let it, and whether it does.

        ``visible`` is what the database answers to that reader; the rules are read off the unit and the policies.

        Raises:
            NotFound: there is no such unit where the caller is.
        """
        # Whoever manages policies sees the unit itself wherever in the tenant they say it is.
        unit = await self._units.read(self._scope, unit_id)
        standing = (await self._registry.with_standing(self._scope.principal)).standing
        every = await self._store.policies(self._scope)
        reader = Principal(self._scope.tenant_id, agent_id, role, "explained", Scope(), session_id, standing=standing)
        seen = self._registry.seen_by(self._scope, reader, place.organization_id, place.assessment_id)
        visible = bool(await self._units.read_many(seen, [unit_id]))
        rules = [*_rules(unit, reader, seen), *(_explained(policy, unit, reader, seen) for policy in every)]
        return Explanation(unit_id=unit_id, agent_id=agent_id, session_id=session_id, visible=visible, rules=rules)


def _rules(unit: ContextUnit, reader: Principal, seen: AuthorizedScope) -> list[ExplainedRule]:
    """What opens a unit without any policy."""
    here = scope_key(unit.scope.organization_id, unit.scope.assessment_id) in seen.own_places
    where = (
        "The unit is in a place that the reader is in." if here else "The unit is in another place than the reader; only a policy opens it."
    )
    own_agent = unit.metadata.agent_id == reader.agent_id
    own_session = reader.session_id is None or unit.metadata.session_id in {None, reader.session_id}
    whose = (
        "The unit is another agent's."
        if not own_agent
        else "The unit is the reader's own."
        if own_session
        else "The unit is the reader's own, from another session than the one it is in."
    )
    return [
        ExplainedRule(rule="scope", opens=False, why=where),
        ExplainedRule(rule="role", opens=here and reader.role.sees_all, why=f"The role {reader.role} {_sees(reader)}."),
        ExplainedRule(rule="own", opens=here and own_agent and own_session, why=whose),
        ExplainedRule(
            rule="published",
            opens=here and unit.trust.value in PUBLISHED,
            why=f"Its trust is {unit.trust}; {' and '.join(PUBLISHED)} are open to everybody in their place.",
        ),
    ]


def _sees(reader: Principal) -> str:
    return "sees every unit where it is" if reader.role.sees_all else "sees its own units, what is published, and what policies open"


def _explained(policy: Policy, unit: ContextUnit, reader: Principal, seen: AuthorizedScope) -> ExplainedRule:
    """Whether one policy opens the unit, and what it fails at."""
    now = datetime.now(UTC)
    why = "It opens the unit."
    opens = False
    if policy.revoked_at is not None:
        why = "It was revoked."
    elif policy.expires_at is not None and policy.expires_at <= now:
        why = "It has expired."
    elif unit.kind not in policy.kinds:
        why = f"It does not open units of kind {unit.kind}."
    elif not is_for(policy, reader, seen.organization_id, seen.assessment_id, now):
        why = "Its `to` is not this reader, here."
    else:
        opens = covers(policy, reader, seen.own_places, unit)
        why = why if opens else "Its `from`, `among` or `scope` does not cover the unit, or it comes to more pairs than one policy may."
    return ExplainedRule(rule="policy", opens=opens, why=why, policy_id=policy.id)
