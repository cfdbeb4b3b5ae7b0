"""Where units stand. The best ones go to the places that the model attends to most, and blocks are never split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from adapters.profile import Attention, Profile
from graph.model.units import ContextUnit, EdgeType, Kind

T = TypeVar("T")

TAIL_SHIFT_FROM = 0.5
"""Fill of the effective window above which weight moves toward the tail (Veseli et al., arXiv 2508.07479: the U shape fades above half)."""
TAIL_SHIFT_MOST = 0.9
"""Share of the head's weight that has moved when the effective window is full. A judgement: the source gives the direction, not a curve."""


def weights(attention: Attention, fill: float) -> tuple[float, float]:
    """Weights of head and tail at a fill (tokens / effective window).

    Up to half, the profile's own. Above, with s = min(1, (fill - 0.5) / 0.5): head x (1 - 0.9 s), and the tail takes the rest.
    """
    moved = min(max((fill - TAIL_SHIFT_FROM) / (1 - TAIL_SHIFT_FROM), 0.0), 1.0)
    head = attention.head * (1 - TAIL_SHIFT_MOST * moved)
    return head, attention.head + attention.tail - head


def position_values(n: int, profile: Profile, fill: float = 0.0) -> list[float]:
    """How well each of n places is attended to, first to last: 1 for the best, 1 - amplitude for none at all.

    The curve is the greater of two that fall from either end, head / (2i + 1) at the i-th place from the start and tail / (2j + 1) at the
    j-th from the end, on the scale of the best place and the profile's amplitude.
    """
    head, tail = weights(profile.attention, fill)
    best = max(head, tail)
    amplitude = profile.attention.amplitude
    return [1 - amplitude * (1 - max(head / (2 * i + 1), tail / (2 * (n - 1 - i) + 1)) / best) for i in range(n)]


def two_ended(blocks: Sequence[T], profile: Profile, fill: float = 0.0) -> list[T]:
    """Blocks in priority order, put into places by largest quotient (Sainte-Lague): the next goes to the head if
    head / (2h + 1) >= tail / (2t + 1), where h and t are how many stand there already, else to the tail.

    Each block so gets the best place left by ``position_values``: a later block never stands better than an earlier one.
    """
    head, tail = weights(profile.attention, fill)
    front: list[T] = []
    back: list[T] = []
    for block in blocks:
        if head * (2 * len(back) + 1) >= tail * (2 * len(front) + 1):
            front.append(block)
        else:
            back.append(block)
    return front + back[::-1]


def call_first(units: Sequence[ContextUnit]) -> list[ContextUnit]:
    """The units of one block: each call, then the results it caused; otherwise as given. Results without their call come last."""
    if len(units) == 1:
        return list(units)
    calls = [unit for unit in units if unit.kind is not Kind.TOOL_RESULT]
    results: dict[str | None, list[ContextUnit]] = {}
    order: list[str] = []
    for unit in units:
        if unit.kind is not Kind.TOOL_RESULT:
            owner: str | None = unit.id
        else:
            owner = _call_of(unit, calls)
            results.setdefault(owner, []).append(unit)
        if owner is not None and owner not in order:
            order.append(owner)
    by_id = {call.id: call for call in calls}
    arranged: list[ContextUnit] = []
    for owner in order:
        arranged += [by_id[owner], *results.get(owner, [])]
    return arranged + results.get(None, [])


def _call_of(result: ContextUnit, calls: Sequence[ContextUnit]) -> str | None:
    """Id of the call that a result answers: by the causation edge, else by the native call id, else the only one there is."""
    causes = {relation.target_id for relation in result.relations if relation.edge_type is EdgeType.CAUSATION}
    call_id = result.metadata.tool.call_id if result.metadata.tool is not None else None
    for call in calls:
        if call.id in causes:
            return call.id
    for call in calls:
        if call_id is not None and call.metadata.tool is not None and call.metadata.tool.call_id == call_id:
            return call.id
    return calls[0].id if len(calls) == 1 else None
