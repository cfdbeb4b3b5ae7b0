"""Policies compiled into what one reader sees: for each place a few maps that the database looks into for each unit it meets.

The predicate over them is ``cypher/visible.predicate``; both say the same, and a property test holds them against a slow model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from graph.model.policy import MAX_PAIRS, Among, Policy, Standing
from graph.model.scope import FOREVER, Principal, scope_key
from graph.model.units import ALL_KINDS, ContextUnit, Scope, Trust

PUBLISHED = tuple(trust.value for trust in Trust if trust.authority)
"""Trust levels that everybody in the same place may read: published reference data, and what a person approved."""
NO_SESSION = ""
NOWHERE = Scope()


@dataclass(slots=True)
class _Place:
    """What is seen of one place, by kinds."""

    sees_all: bool = False
    published: bool = False
    any_writer: set[str] = field(default_factory=set[str])
    agents: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    sessions: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    owners: dict[str, dict[str, set[str]]] = field(default_factory=dict[str, dict[str, set[str]]])

    def open(self, kinds: Iterable[str], agents: Iterable[str] | None, sessions: Iterable[str] | None) -> None:
        """Open kinds of some agents' units, of some sessions', of both, or (None, None) of everybody's."""
        if agents is None and sessions is None:
            self.any_writer.update(kinds)
        elif sessions is None:
            for agent in agents or ():
                self.agents.setdefault(agent, set()).update(kinds)
        elif agents is None:
            for session in sessions:
                self.sessions.setdefault(session, set()).update(kinds)
        else:
            sessions = tuple(sessions)
            for agent in agents:
                for session in sessions:
                    self.owners.setdefault(agent, {}).setdefault(session, set()).update(kinds)

    def as_parameter(self) -> dict[str, object]:
        return {
            "everything": self.sees_all,
            "trusts": list(PUBLISHED) if self.published else [],
            "any_writer": sorted(self.any_writer),
            "agents": {agent: sorted(kinds) for agent, kinds in self.agents.items()},
            "sessions": {session: sorted(kinds) for session, kinds in self.sessions.items()},
            "owners": {agent: {session: sorted(kinds) for session, kinds in of.items()} for agent, of in self.owners.items()},
        }


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader sees, of which policies and teams that was made, and until when it holds if none of them changes."""

    sees: dict[str, object]
    standing: Standing
    until: datetime


def holds_until(standing: Standing, now: datetime) -> datetime:
    """When the next of the tenant's policies ends."""
    return min(
        (policy.expires_at for policy in standing.policies if policy.expires_at is not None and policy.expires_at > now), default=FOREVER
    )


def compiled(
    principal: Principal, own_places: Iterable[str], organization_id: str | None, assessment_id: str | None, now: datetime
) -> dict[str, object]:
    """What a reader sees, by scope key, as ``$sees`` of every scoped statement.

    By itself: its own units of its session, or of all of its sessions when it names none; what is published where it is; everything there
    for roles that review. Policies open the rest.
    """
    places: dict[str, _Place] = {}
    for key in own_places:
        place = places.setdefault(key, _Place(sees_all=principal.role.sees_all and principal.reviews(key), published=True))
        sessions = None if principal.session_id is None else (principal.session_id, NO_SESSION)
        place.open(ALL_KINDS, (principal.agent_id,), sessions)
    own = tuple(places)
    for policy in applicable(principal, organization_id, assessment_id, now):
        writers = _writers(policy, principal)
        sessions = _sessions(policy, principal)
        if writers is not None and not writers:
            continue
        if sessions is not None and not sessions:
            continue
        if _is_too_large(writers, sessions):
            continue
        for key in _keys(policy, own):
            places.setdefault(key, _Place()).open([kind.value for kind in policy.kinds], writers, sessions)
    return {key: place.as_parameter() for key, place in places.items()}


def applicable(principal: Principal, organization_id: str | None, assessment_id: str | None, now: datetime) -> Iterator[Policy]:
    """The tenant's policies whose ``to`` is this reader, here and now."""
    for policy in principal.standing.policies:
        if is_for(policy, principal, organization_id, assessment_id, now):
            yield policy


def is_for(policy: Policy, principal: Principal, organization_id: str | None, assessment_id: str | None, now: datetime) -> bool:
    """Whether a policy's ``to`` is this reader, here and now."""
    if policy.revoked_at is not None or (policy.expires_at is not None and policy.expires_at <= now):
        return False
    to, place = policy.to, policy.to_scope
    if (to.agents or to.teams) and principal.agent_id not in to.agents and principal.teams.isdisjoint(to.teams):
        return False
    if to.sessions and principal.session_id not in to.sessions:
        return False
    if place.organization_id is not None and place.organization_id != organization_id:
        return False
    if place.assessment_id is not None and place.assessment_id != assessment_id:
        return False
    # A key that is bound to a place stays in it: only a policy that names its place reaches it from elsewhere.
    bound = principal.bound
    return NOWHERE in (bound, policy.scope) or policy.to_scope != NOWHERE


def _is_too_large(writers: set[str] | None, sessions: set[str] | None) -> bool:
    """Whether a policy comes to more pairs than one may: teams grow after a policy was made. It opens nothing then, and explaining says so."""
    return writers is not None and sessions is not None and len(writers) * len(sessions) > MAX_PAIRS


def covers(policy: Policy, principal: Principal, own_places: Iterable[str], unit: ContextUnit) -> bool:
    """Whether a policy that is for this reader opens one unit; for explaining, unit by unit."""
    writers, sessions = _writers(policy, principal), _sessions(policy, principal)
    return (
        not _is_too_large(writers, sessions)
        and unit.kind in policy.kinds
        and scope_key(unit.scope.organization_id, unit.scope.assessment_id) in _keys(policy, tuple(own_places))
        and (writers is None or unit.metadata.agent_id in writers)
        and (sessions is None or unit.metadata.session_id in sessions)
    )


def _keys(policy: Policy, own_places: tuple[str, ...]) -> tuple[str, ...]:
    """Scope keys that a policy opens to a reader who is in ``own_places``."""
    return own_places if policy.scope == NOWHERE else (scope_key(policy.scope.organization_id, policy.scope.assessment_id),)


def _writers(policy: Policy, principal: Principal) -> set[str] | None:
    """Agents whose units the policy opens to this reader; None for all."""
    named: set[str] | None = None
    if policy.source.agents or policy.source.teams:
        named = set(policy.source.agents).union(*(principal.standing.teams.get(team, frozenset()) for team in policy.source.teams))
    related: set[str] | None = None
    if policy.among is Among.AGENT:
        related = {principal.agent_id}
    elif policy.among is Among.TEAM:
        related = set[str]().union(*(principal.standing.teams[team] for team in principal.teams))
    if named is None or related is None:
        return related if named is None else named
    return named & related


def _sessions(policy: Policy, principal: Principal) -> set[str] | None:
    """Sessions whose units the policy opens to this reader; None for all."""
    named = set(policy.source.sessions) or None
    if policy.among is not Among.SESSION:
        return named
    own = {principal.session_id} if principal.session_id is not None else set[str]()
    return own if named is None else named & own
