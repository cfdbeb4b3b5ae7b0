"""A unit as selection sees it: everything but its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from graph.model.answer import PathStep, SearchReceipt
from graph.model.units import EdgeType, EpistemicStatus, Kind, Trust


class Candidate(NamedTuple):
    """What a statement returns of a unit before it is chosen. Text and embedding stay in the database.

    A tuple, since thousands are made and changed for one answer: a frozen dataclass takes four times as long.
    """

    id: str
    kind: Kind
    trust: Trust
    epistemic_status: EpistemicStatus
    agent_id: str
    actor: str | None
    timestamp: datetime
    task_id: str | None
    task_step: int | None
    tool_name: str | None
    content_tokens: int
    """Tokens of the unit's body as it is rendered (content, and a call's arguments) by ``o200k_base``, kept with the unit."""
    score: float
    path: tuple[PathStep, ...] = ()
    reason: str = "reached"
    relations: tuple[tuple[EdgeType, str], ...] = ()
    """Outgoing edges to units that this caller may see."""
    superseded_by: tuple[str, ...] = ()
    """Ids of units that replace it, within the caller's sight and time."""
    results: tuple[str, ...] = ()
    """Ids of tool results that it caused."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a strategy found: candidates best first, and whether a bound cut a neighbourhood short."""

    candidates: tuple[Candidate, ...] = field(default=())
    hubs_sampled: bool = False
    search: SearchReceipt | None = None
    """What was searched, where something was."""
    notes: tuple[str, ...] = ()
    """For the receipt: what could not be done, and why."""
    partial: bool = False
    """Whether something of it was late or failed and is not part of this; asked again, it may be."""
