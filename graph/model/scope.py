"""Who is asking, and what that lets them see. ``AuthorizedScope`` is the only pass that a statement accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from graph.model.policy import NO_STANDING, Standing
from graph.model.units import Scope, Trust

FOREVER = datetime.max.replace(tzinfo=UTC)
RESERVED_PREFIX = "lastro:"
"""Names of tenants that the service keeps for itself begin with this."""


class Role(StrEnum):
    """What a key may do (T6)."""

    ADMIN = "admin"
    """Manages the tenant's keys, may write for any agent and at any trust but normative."""
    PUBLISHER = "publisher"
    """Approves memory and publishes normative data."""
    AGENT = "agent"
    """Reads and writes context as one agent."""
    ANALYST = "analyst"
    """Reads context and provenance, writes nothing."""

    @property
    def writes(self) -> bool:
        """Whether keys of this role may write units."""
        return self is not Role.ANALYST

    @property
    def sees_all(self) -> bool:
        """Whether keys of this role see every unit of the place they are in: those who review or manage do; an agent sees its own."""
        return self is not Role.AGENT

    @property
    def trust_levels(self) -> frozenset[Trust]:
        """The trust levels that units written with this role may have."""
        match self:
            case Role.PUBLISHER:
                return frozenset(Trust)
            case Role.ADMIN:
                return frozenset(Trust) - {Trust.NORMATIVE}
            case Role.AGENT:
                return frozenset({Trust.AGENT_OUTPUT, Trust.EVIDENCE_CANDIDATE})
            case Role.ANALYST:
                return frozenset()


@dataclass(frozen=True, slots=True)
class Principal:
    """An identified caller: from the key (tenant, agent, role, bounds) and the headers (session, model)."""

    tenant_id: str
    agent_id: str
    role: Role
    key_id: str
    bound: Scope
    """Organisation and assessment that the key is bound to, if any."""
    session_id: str | None = None
    model: str | None = None
    session_bound: bool = False
    """Whether the session came with the proof of identity, and not from a header that may say any."""
    standing: Standing = field(default=NO_STANDING, repr=False)
    """The tenant's policies and teams at the time of the request."""
    epoch: int | None = field(default=None, repr=False)
    """The tenant's, read together with the proof of identity: how often it was changed. None when it was not read."""

    @property
    def is_bound(self) -> bool:
        """Whether it is kept within a part of the tenant: an organisation, an assessment or a session."""
        return self.session_bound or self.bound != Scope()

    def reviews(self, key: str) -> bool:
        """Whether a place (scope key) lies within the key's bounds. What lies above is not reviewed from there, nor anything from a session:
        of it a bound key sees what an agent would.
        """
        bound = self.bound
        if self.session_bound:
            return False
        if bound.assessment_id is not None:
            return key == scope_key(bound.organization_id, bound.assessment_id)
        return bound.organization_id is None or key == bound.organization_id or key.startswith(f"{bound.organization_id} ")

    @property
    def teams(self) -> frozenset[str]:
        """Teams that the agent belongs to."""
        return self.standing.teams_of(self.agent_id)


class AuthorizedScope:
    """What a principal may read and write. Only ``app.registry`` makes one; a test keeps it so.

    Every statement that touches units takes its ``parameters``, so a read without a tenant cannot be written by accident.
    """

    __slots__ = ("assessment_id", "holds_until", "organization_id", "principal", "sees")

    def __init__(
        self,
        principal: Principal,
        organization_id: str | None,
        assessment_id: str | None,
        sees: Mapping[str, object] | None = None,
        holds_until: datetime = FOREVER,
    ) -> None:
        self.principal = principal
        self.organization_id = organization_id
        self.assessment_id = assessment_id
        self.sees = dict(sees or {})
        """What is seen, by scope key; see ``app.registry.grants``. Nothing, when it is not said."""
        self.holds_until = holds_until
        """When the next of the policies ends that decide about it."""

    @property
    def tenant_id(self) -> str:
        return self.principal.tenant_id

    @property
    def own_places(self) -> list[str]:
        """Scope keys of where the request is: the tenant's own, the organisation's, the assessment's."""
        keys = [scope_key(None, None)]
        if self.organization_id is not None:
            keys.append(scope_key(self.organization_id, None))
        if self.assessment_id is not None:
            keys.append(scope_key(self.organization_id, self.assessment_id))
        return keys

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters that every scoped statement binds."""
        return {"tenant_id": self.tenant_id, "sees": self.sees}


def scope_key(organization_id: str | None, assessment_id: str | None) -> str:
    """One text for a place inside the tenant. Ids hold no space, so two places never share a key."""
    return f"{organization_id or ''} {assessment_id}" if assessment_id is not None else (organization_id or "")
