"""Quotas and usage: who is counted, what may be used, and what was used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

import orjson
from pydantic import Field

from graph.model.base import Model, Timestamp
from graph.model.scope import AuthorizedScope
from graph.model.units import ContextUnit

LONGEST_WINDOW_S = 31 * 86_400
MOST = 2**53 - 1
"""The largest limit: what JSON readers of every language keep exact."""


class SubjectType(StrEnum):
    """Who has counters and can have a quota."""

    TENANT = "tenant"
    AGENT = "agent"
    SESSION = "session"
    TEAM = "team"


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """One that is counted."""

    type: SubjectType
    id: str

    def key(self, tenant_id: str) -> str:
        """One text for it in the database. Ids hold no space, so two subjects never share a key, nor do two tenants."""
        return f"{tenant_id} {self.type} {self.id}"


@dataclass(frozen=True, slots=True)
class Amount:
    """What is stored: units, and their content and tool arguments in bytes of UTF-8."""

    units: int = 0
    bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.units + other.units, self.bytes + other.bytes)

    def __neg__(self) -> Amount:
        return Amount(-self.units, -self.bytes)


@dataclass(frozen=True, slots=True)
class StoredShare:
    """One stored unit, as far as counters go; see ``stored_bytes`` for ``bytes``."""

    agent_id: str
    session_id: str | None
    team_ids: tuple[str, ...]
    """Teams that its writer was in when it was written."""
    bytes: int
    units: int = 1
    """0 for what is stored and is no unit, such as the original of an attachment."""


def subjects_of(scope: AuthorizedScope) -> list[Subject]:
    """Whom a request of this caller counts for: the tenant, its agent, its session and its teams."""
    principal = scope.principal
    found = [Subject(SubjectType.TENANT, principal.tenant_id), Subject(SubjectType.AGENT, principal.agent_id)]
    if principal.session_id is not None:
        found.append(Subject(SubjectType.SESSION, principal.session_id))
    return [*found, *(Subject(SubjectType.TEAM, team_id) for team_id in sorted(principal.teams))]


def stored_bytes(content: str, tool_arguments: str | None) -> int:
    """Bytes that a unit counts for: its content and its tool arguments as they are stored, in UTF-8."""
    return _size(content) + (_size(tool_arguments) if tool_arguments is not None else 0)


def shares_of(scope: AuthorizedScope, units: Iterable[ContextUnit]) -> list[StoredShare]:
    """New units of a batch as they will be stored."""
    teams = tuple(sorted(scope.principal.teams))
    shares: list[StoredShare] = []
    for unit in units:
        tool = unit.metadata.tool
        arguments = len(orjson.dumps(tool.arguments)) if tool is not None and tool.arguments is not None else 0
        agent_id = unit.metadata.agent_id or scope.principal.agent_id
        shares.append(StoredShare(agent_id, unit.metadata.session_id, teams, _size(unit.content) + arguments))
    return shares


def amounts_of(tenant_id: str, shares: Iterable[StoredShare]) -> dict[Subject, Amount]:
    """What these units are for each subject that they count for."""
    found: dict[Subject, list[int]] = {}
    for share in shares:
        subjects = [Subject(SubjectType.TENANT, tenant_id), Subject(SubjectType.AGENT, share.agent_id)]
        if share.session_id is not None:
            subjects.append(Subject(SubjectType.SESSION, share.session_id))
        subjects += (Subject(SubjectType.TEAM, team_id) for team_id in share.team_ids)
        for subject in subjects:
            sums = found.setdefault(subject, [0, 0])
            sums[0] += share.units
            sums[1] += share.bytes
    return {subject: Amount(*sums) for subject, sums in found.items()}


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


Limit = Annotated[int, Field(ge=0, le=MOST)] | None


class QuotaLimits(Model):
    """The body of ``PUT /v1/quotas/{subject_type}/{subject_id}``: all limits of a subject; what is left out is not limited."""

    units: Limit = Field(default=None, description="Most units stored.")
    bytes: Limit = Field(default=None, description="Most bytes stored: content and tool arguments in UTF-8, and originals of attachments.")
    requests: Limit = Field(default=None, description="Most requests in a window.")
    tokens: Limit = Field(default=None, description="Most tokens in a window: those of answers read and of units written.")
    window_s: Annotated[int, Field(ge=1, le=LONGEST_WINDOW_S)] | None = Field(
        default=None, description="Length of a window, seconds; needed with requests or tokens. Windows follow one another by the clock."
    )

    @property
    def limits_storage(self) -> bool:
        return self.units is not None or self.bytes is not None

    @property
    def limits_bandwidth(self) -> bool:
        return self.requests is not None or self.tokens is not None


class QuotaNumbers(Model):
    """Numbers beside each limit; null where there is no limit."""

    units: int | None
    bytes: int | None
    requests: int | None
    tokens: int | None


class QuotaView(Model):
    """A quota with what is used and what remains of it."""

    subject_type: SubjectType
    subject_id: str
    limits: QuotaLimits
    used: QuotaNumbers
    remaining: QuotaNumbers
    resets_at: Timestamp | None = Field(description="When the window ends, and its requests and tokens begin anew.")


class QuotaList(Model):
    """Quotas in the order of their subjects."""

    quotas: list[QuotaView]


class Span(StrEnum):
    """What usage is summed over."""

    TOTAL = "total"
    DAY = "day"
    HOUR = "hour"


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Whose usage, of what time. ``since`` and ``until`` are taken to the hour that they are in, ``until`` is left out itself."""

    subject_type: SubjectType | None = None
    subject_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    by: Span = Span.TOTAL


class UsageRow(Model):
    """What one subject holds now, and what it did in a span of time."""

    subject_type: SubjectType
    subject_id: str
    starts_at: Timestamp | None = Field(description="Begin of the hour or day (UTC); null for the sum over all that was asked for.")
    units: int = Field(description="Units stored now.")
    bytes: int = Field(description="Their content and tool arguments in UTF-8, bytes.")
    requests: int = Field(description="Requests let in: reading and writing units, asking for context.")
    reads: int = Field(description="Reads of units, and context answers given.")
    writes: int = Field(description="Batches stored.")
    units_written: int
    tokens_read: int = Field(description="Tokens of context answers, as their consumption says.")
    tokens_written: int = Field(description="Tokens of new units (o200k_base).")


class UsagePage(Model):
    """A page of usage; ``next`` is the cursor of the page after it, if there may be one."""

    rows: list[UsageRow]
    next: str | None = None
