"""The token budget ledger: what context answers cost, by who asked, for which task and model, hour by hour (A10)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from graph.model.base import Model, Timestamp

NONE = ""
"""Stands for no session, task or model in the database: ids are never empty."""
OTHER = "other tasks"
"""Stands for the tasks that were not kept apart. It holds a space, so it is nobody's id."""
OTHER_MODELS = "other models"


class LedgerGroup(StrEnum):
    """What rows are kept apart by. ``hour`` and ``day`` (UTC) are periods; at most one of them."""

    AGENT = "agent"
    SESSION = "session"
    TASK = "task"
    MODEL = "model"
    HOUR = "hour"
    DAY = "day"

    @property
    def hours(self) -> int:
        """Length of the period; 0 for what is none."""
        return {LedgerGroup.HOUR: 1, LedgerGroup.DAY: 24}.get(self, 0)


DEFAULT_GROUPS = (LedgerGroup.AGENT, LedgerGroup.TASK, LedgerGroup.MODEL)


@dataclass(frozen=True, slots=True, order=True)
class LedgerKey:
    """Whose answers are counted together: of one agent in one session, for one task and model."""

    agent_id: str
    session_id: str
    task_id: str
    model: str

    def key(self, tenant_id: str, hour: int, replica: str) -> str:
        """One text for it in the database, by time. A model is any text, so what may hold spaces is told apart by a digest."""
        named = f"{self.agent_id}\n{self.session_id}\n{self.task_id}\n{self.model}"
        return f"{tenant_id} {hour:010d} {hashlib.sha256(named.encode()).hexdigest()[:32]} {replica}"


@dataclass(slots=True)
class Spent:
    """What answers cost, as far as one replica counted it. Tokens are the target model's own."""

    answers: int = 0
    cache_hits: int = 0
    fallbacks: int = 0
    tokens_asked: int = 0
    tokens_spent: int = 0
    tokens_left_out: int = 0


@dataclass(frozen=True, slots=True)
class LedgerQuery:
    """Answers of which time, summed by what; only of this agent, task and model, if any is named. ``since`` and ``until`` are taken to the hour that they are in; ``until`` is left out itself."""

    since: datetime | None = None
    until: datetime | None = None
    group_by: tuple[LedgerGroup, ...] = DEFAULT_GROUPS
    agent_id: str | None = None
    task_id: str | None = None
    model: str | None = None

    @property
    def hours(self) -> int:
        """Length of the periods that are kept apart; 0 for one sum over the whole time."""
        return max((group.hours for group in self.group_by), default=0)


class LedgerRow(Model):
    """What some answers cost. A name is null when rows are not grouped by it, and when the answers had none."""

    agent_id: str | None
    session_id: str | None
    task_id: str | None = Field(description=f"`{OTHER}`, with a space, stands for those that were not kept apart.")
    model: str | None = Field(description=f"As it was asked for; `{OTHER_MODELS}` stands for those that were not kept apart.")
    starts_at: Timestamp | None = Field(description="Begin of the hour or day (UTC); null for the sum over all that was asked for.")
    answers: int = Field(description="Context answers given.")
    cache_hits: int = Field(description="Those that were made for an earlier request.")
    fallbacks: int = Field(description="Those by another strategy than the one first chosen, which was too slow.")
    tokens_asked: int = Field(description="Budgets of the queries.")
    tokens_spent: int = Field(description="Tokens of the answers, as their consumption says.")
    tokens_left_out: int = Field(description="Tokens of candidates that the budgets had no room for.")


class LedgerPage(Model):
    """A page of the ledger, by period, agent, session, task and model; ``next`` is the cursor of the page after it, if there may be one."""

    rows: list[LedgerRow]
    next: str | None = None
