"""Rules over a whole batch, decided before the database is asked."""

from __future__ import annotations

from collections.abc import Sequence

from graph.model.errors import CycleInBatch, DuplicateInBatch, SelfEdge
from graph.model.units import ContextUnit


def check_batch(units: Sequence[ContextUnit]) -> None:
    """Refuse a batch in which an id stands twice, a unit points to itself, or edges lead back (U4).

    Edges to stored units cannot close a cycle: a stored unit never gets new edges, so no path leads from it into the batch.

    Raises:
        DuplicateInBatch, SelfEdge, CycleInBatch: each names the item.
    """
    position: dict[str, int] = {}
    for index, unit in enumerate(units):
        if unit.id in position:
            raise DuplicateInBatch().at(index=index, id=unit.id)
        position[unit.id] = index
    waiting: dict[str, set[str]] = {}
    needed_by: dict[str, list[str]] = {}
    for index, unit in enumerate(units):
        targets = {relation.target_id for relation in unit.relations}
        if unit.id in targets:
            raise SelfEdge().at(index=index, id=unit.id, field="relations")
        inside = targets & position.keys()
        if inside:
            waiting[unit.id] = inside
            for target in inside:
                needed_by.setdefault(target, []).append(unit.id)
    stuck = _on_a_cycle([unit.id for unit in units], waiting, needed_by)
    if stuck is not None:
        raise CycleInBatch().at(index=position[stuck], id=stuck, field="relations")


def _on_a_cycle(unit_ids: Sequence[str], waiting: dict[str, set[str]], needed_by: dict[str, list[str]]) -> str | None:
    """Kahn's order: take away units whose targets are all placed. What remains lies on a cycle or leads to one. A unit on one, or None."""
    ready = [unit_id for unit_id in unit_ids if unit_id not in waiting]
    while ready:
        placed = ready.pop()
        for dependent in needed_by.get(placed, ()):
            waiting[dependent].discard(placed)
            if not waiting[dependent]:
                del waiting[dependent]
                ready.append(dependent)
    at = next((unit_id for unit_id in unit_ids if unit_id in waiting), None)
    walked: set[str] = set()
    while at is not None and at not in walked:
        walked.add(at)
        at = min(waiting[at])
    return at
