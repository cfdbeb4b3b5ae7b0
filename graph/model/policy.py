"""Policies: what opens a unit to others than the agent and session that wrote it (T2, T5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from graph.model.base import Id, Model, ShortText, Timestamp
from graph.model.units import Kind, Scope

MAX_NAMES = 64
"""Agents, teams or sessions that one policy names."""
MAX_POLICIES = 250
"""Policies of a tenant that are in force at once."""
MAX_TEAMS = 1_000
MAX_MEMBERS = 1_000
MAX_PAIRS = 1_024
"""Pairs of a writer and a session that one policy may come to, with the members of its teams; one that comes to more opens nothing."""


class Among(StrEnum):
    """How writer and reader must be related, beside what `from` and `to` name."""

    ANY = "any"
    """Not at all."""
    AGENT = "agent"
    """The same agent, in whatever session."""
    TEAM = "team"
    """Two agents of one team."""
    SESSION = "session"
    """In one session, whatever agents."""


class Party(Model):
    """Whom one side of a policy names; an empty list names all of them."""

    agents: list[Id] = Field(default_factory=list[Id], max_length=MAX_NAMES)
    teams: list[Id] = Field(default_factory=list[Id], max_length=MAX_NAMES)
    sessions: list[Id] = Field(default_factory=list[Id], max_length=MAX_NAMES)


class PolicyRequest(Model):
    """The body of ``POST /v1/policies``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True, serialize_by_alias=True)

    kinds: list[Kind] = Field(min_length=1, max_length=len(Kind), description="Kinds of units that it opens.")
    source: Party = Field(default_factory=Party, alias="from", description="Whose units: by agents or teams, and by sessions.")
    to: Party = Field(default_factory=Party, description="Who may read them: agents or teams, and in which sessions.")
    among: Among = Field(default=Among.ANY, description="any, or the same agent, team or session on both sides.")
    scope: Scope = Field(
        default_factory=Scope,
        description="Where the units are: an organisation, or one of its assessments. Empty: wherever the reader is. "
        "Another place than the reader's is opened only by naming it here, with a reason.",
    )
    to_scope: Scope = Field(default_factory=Scope, description="Where the reader must be; empty: anywhere in the tenant.")
    expires_at: Timestamp | None = Field(default=None, description="When it ends; never when left out.")
    reason: ShortText | None = Field(default=None, description="Why; required when `scope` opens another place.")

    @model_validator(mode="after")
    def _has_a_reason(self) -> PolicyRequest:
        if self.crosses and not (self.reason or "").strip():
            raise PydanticCustomError("reason_missing", "a grant to another place needs a reason")
        return self

    @model_validator(mode="after")
    def _places_are_whole(self) -> PolicyRequest:
        if any(place.assessment_id is not None and place.organization_id is None for place in (self.scope, self.to_scope)):
            raise PydanticCustomError("invalid_field", "an assessment is one of an organisation")
        return self

    @property
    def crosses(self) -> bool:
        """Whether it opens a place to readers who are not in it."""
        return self.scope != Scope() and self.to_scope != self.scope


class Policy(PolicyRequest):
    """A policy in force, or one that was."""

    id: str
    created_by: str
    created_at: Timestamp
    revoked_at: Timestamp | None = None


class PolicyList(Model):
    """A tenant's policies, newest first."""

    policies: list[Policy]


class Team(Model):
    """Agents that belong together. Quotas and policies name it."""

    id: Id
    agents: list[Id] = Field(max_length=MAX_MEMBERS)


class TeamList(Model):
    """A tenant's teams, by id."""

    teams: list[Team]


class Template(Model):
    """A policy to begin with."""

    name: str
    about: str
    policy: PolicyRequest


class TemplateList(Model):
    """What the service ships."""

    templates: list[Template]


class ExplainedRule(Model):
    """One thing that could let a reader see a unit, and whether it does."""

    rule: str = Field(description="`scope`, `role`, `own`, `published`, or `policy`.")
    opens: bool
    why: str
    policy_id: str | None = None


class Explanation(Model):
    """Why a reader can see a unit, or cannot."""

    unit_id: str
    agent_id: str
    session_id: str | None
    visible: bool
    rules: list[ExplainedRule]


@dataclass(frozen=True)
class Standing:
    """What a tenant's policies and teams are, as of an epoch of theirs."""

    policies: tuple[Policy, ...] = ()
    teams: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Agents by team."""

    @cached_property
    def _teams_by_agent(self) -> dict[str, frozenset[str]]:
        # Turned round once for each change of the teams: every request asks for one agent's several times.
        found: dict[str, set[str]] = {}
        for team, agents in self.teams.items():
            for agent in agents:
                found.setdefault(agent, set()).add(team)
        return {agent: frozenset(teams) for agent, teams in found.items()}

    def teams_of(self, agent_id: str) -> frozenset[str]:
        """Teams that an agent belongs to."""
        return self._teams_by_agent.get(agent_id, frozenset())


NO_STANDING = Standing()
