"""Which candidates may enter an answer at all, and what stands in for those that were replaced (R6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graph.model.answer import LeftOutReason
from graph.model.query import ContextQuery
from graph.model.units import ContextUnit, EpistemicStatus
from graph.unit_rows import StoredUnit


@dataclass(frozen=True, slots=True)
class Allowed:
    """The unit may be part of the answer."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It may not, and why."""

    reason: LeftOutReason


def admit(stored: StoredUnit, loaded: Mapping[str, StoredUnit], query: ContextQuery) -> Allowed | Refused:
    """Whether a unit may be part of the answer to a query.

    ``loaded`` holds what this caller may see, so a superseder that is out of sight does not hide what it replaced.
    """
    if stored.unit.metadata.epistemic_status is EpistemicStatus.RETRACTED:
        return Refused(LeftOutReason.RETRACTED)
    if not query.include_history and visible_superseders(stored, loaded):
        return Refused(LeftOutReason.SUPERSEDED)
    return Allowed()


def visible_superseders(stored: StoredUnit, loaded: Mapping[str, StoredUnit]) -> Sequence[ContextUnit]:
    """Who replaced a unit, as far as the caller may see. A retracted correction replaces nothing."""
    found = (loaded[superseder_id].unit for superseder_id in stored.superseder_ids if superseder_id in loaded)
    return [unit for unit in found if unit.metadata.epistemic_status is not EpistemicStatus.RETRACTED]


def current(unit_id: str, loaded: Mapping[str, StoredUnit]) -> str:
    """The newest unit that a unit was replaced by, along the chain; itself when it was not.

    Edges form no cycle, so the chain ends; among several superseders the latest recorded one counts, ties by id.
    """
    at = unit_id
    while superseders := visible_superseders(loaded[at], loaded):
        at = max(superseders, key=lambda unit: (unit.metadata.recorded_at, unit.id)).id
    return at
