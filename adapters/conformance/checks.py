"""What holds for every answer, one function a rule: each takes a case and what the adapter made of it, and names what is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product

from adapters.base import Adapter, RenderResult, unit_body
from adapters.conformance.cases import Case
from adapters.conformance.places import Place, places
from adapters.conformance.subject import Subject
from adapters.conformance.ties import tied, ties_of
from adapters.fence import well_formed
from adapters.order import TAIL_SHIFT_FROM, TAIL_SHIFT_MOST, position_values
from adapters.tokenizers import Tokenizers
from graph.model.answer import CountMethod
from graph.model.candidates import Candidate
from graph.model.query import ToolPairs
from graph.model.units import ContextUnit, EdgeType, Kind

FRAME_TOKENS_A_TEXT = 16
"""The most that a vendor's frame adds for a text, its role and its names: the published ones add 3 to 7. A judgement, with room."""
FRAME_TOKENS = 64
"""The same for a request."""
CALIBRATED_ERROR = 0.35
"""How far a calibrated count may be from the tokenizer it is calibrated on: its measured errors are of prose (19 % at p95 on one document), and
the cases hold other things too. A judgement."""
CONTENT_ERROR = 0.25
"""How far the part that is content may be from the contents counted one by one: cuts between texts move some tokens."""
ESTIMATED_FILL = 2.0
"""By which factor an adapter may be off when it estimates how full the window will be."""
_SAME = 1e-9


@dataclass(frozen=True)
class Answer:
    """A case, what was made of it, and where each mark was found. Not slotted: what is found is found once."""

    subject: Subject
    adapter: Adapter
    case: Case
    result: RenderResult
    units: Mapping[str, ContextUnit] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", {item.unit.id: item.unit for item in self.case.request.items})

    @cached_property
    def texts(self) -> list[Place]:
        """The texts of the payload in reading order."""
        return places(self.result.rendered.payload)

    @cached_property
    def found(self) -> dict[str, list[tuple[int, int]]]:
        """Unit id -> where its mark stands: number of the text and character within it."""
        where: dict[str, list[tuple[int, int]]] = {}
        for id, mark in self.case.marks.items():
            where[id] = [(n, at) for n, place in enumerate(self.texts) for at in _all(place.text, mark)]
        return where

    @cached_property
    def in_authority(self) -> frozenset[str]:
        """Ids of units of which something stands where the model takes orders."""
        return frozenset(id for id, where in self.found.items() if any(self.texts[n].authority for n, _ in where))

    @cached_property
    def rules(self) -> frozenset[str]:
        """Ids of the units that may stand where the model takes orders: constraints of authority that no other of the answer replaces."""
        replaced = {
            relation.target_id
            for unit in self.units.values()
            for relation in unit.relations
            if relation.edge_type is EdgeType.SUPERSESSION
            and relation.target_id in self.units
            and unit.trust.rank <= self.units[relation.target_id].trust.rank
        }
        return frozenset(
            id for id, unit in self.units.items() if unit.kind is Kind.CONSTRAINT and unit.trust.authority and id not in replaced
        )

    def may_be_native(self, unit: ContextUnit) -> bool:
        """Whether the unit may be told in the vendor's own form: a tool call of the session that asks, or what it returned."""
        request = self.case.request
        own = unit.metadata.agent_id == request.agent_id and unit.metadata.session_id == request.session_id
        return request.tool_pairs is ToolPairs.NATIVE and own and unit.metadata.tool is not None

    @cached_property
    def native(self) -> frozenset[str]:
        """Ids of the units that are told so: those of whole groups that may be, something of which stands in a turn with native calls or results."""
        turns = {tie.turn for tie in ties_of(self.result.rendered.payload)}
        groups: dict[int, list[ContextUnit]] = {}
        for item in self.case.request.items:
            groups.setdefault(item.group, []).append(item.unit)
        whole = [group for group in groups.values() if len(group) > 1 and all(map(self.may_be_native, group))]
        told = [group for group in whole if any(self.texts[number].turn in turns for unit in group for number, _ in self.found[unit.id])]
        return frozenset(unit.id for group in told for unit in group)


def _all(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def sendable(answer: Answer) -> Iterator[str]:
    """The payload is JSON in UTF-8, and names the model that was asked for."""
    try:
        json.dumps(answer.result.rendered.payload, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as failure:
        yield f"the payload cannot be sent as JSON in UTF-8: {type(failure).__name__}"
    asked = well_formed(answer.case.request.model)
    if answer.result.rendered.model != asked:
        yield "`rendered.model` is not the model that was asked for"


def represented(answer: Answer) -> Iterator[str]:
    """Each unit's text stands in the payload exactly once, and ``order`` names each unit exactly once."""
    for id, where in answer.found.items():
        if len(where) != 1:
            yield f"the text of unit {_shown(id)} stands in the payload {len(where)} times"
    order = answer.result.rendered.order
    if len(order) != len(set(order)) or set(order) != set(answer.units):
        yield f"`order` names {len(order)} units, {len(set(order))} of them different, of the {len(answer.units)} that were given"


def told_in_order(answer: Answer) -> Iterator[str]:
    """``order`` is the order in which the payload's texts really stand."""
    seen = sorted((where[0], id) for id, where in answer.found.items() if where)
    if [id for _, id in seen] != [id for id in answer.result.rendered.order if answer.found.get(id)]:
        yield "`order` is not the order in which the units stand in the payload"


def priority(answer: Answer) -> Iterator[str]:
    """No block of lower priority stands in a better place than one of higher priority, by the profile's attention (A3).

    Constraints of authority stand apart, and native calls stand where the vendor wants them; a request for a stable prefix gives the order up.
    """
    if answer.case.request.stable_prefix:
        return
    blocks: dict[int, list[tuple[int, int]]] = {}
    rules: list[tuple[int, int]] = []
    for item in answer.case.request.items:
        where = answer.found[item.unit.id][:1]
        if item.unit.id in answer.in_authority:
            rules += where
        elif item.unit.id not in answer.rules and item.unit.id not in answer.native:
            blocks.setdefault(item.group, []).extend(where)
    if rules != sorted(rules):
        yield "constraints beside the policy do not stand in priority order"
    ranked = [min(where) for where in blocks.values() if where]
    places_of = {where: place for place, where in enumerate(sorted(ranked))}
    taken = [places_of[where] for where in ranked]
    worst = ""
    for fill in _fills(answer, taken):
        values = position_values(len(taken), answer.adapter.profile, fill)
        behind = next((n for n, (one, two) in enumerate(pairwise(taken)) if values[two] > values[one] + _SAME), None)
        if behind is None:
            return
        worst = (
            f"the block of priority {behind + 2} stands at place {taken[behind + 1] + 1} of {len(taken)}, a better one than"
            f" place {taken[behind] + 1} of the block before it"
        )
    if worst:
        yield worst


def _fills(answer: Answer, taken: Sequence[int]) -> list[float]:
    """Fills of the window that an adapter may have reckoned with: before rendering it can only estimate, to a factor of two.

    Which of two places is the better one changes only where the quotient of one end's weight meets one of the other's, so these fills and
    one between each two of them stand for all.
    """
    attention = answer.adapter.profile.attention
    fill = answer.result.tokens.value / answer.adapter.profile.window.effective
    low, high = fill / ESTIMATED_FILL, fill * ESTIMATED_FILL
    if high <= TAIL_SHIFT_FROM:
        return [0.0]
    meets = {low, high}
    for one, two in pairwise(taken):
        for i, j in product((one, two), repeat=2):
            ratio = (2 * (len(taken) - 1 - j) + 1) / (2 * i + 1)
            head = (attention.head + attention.tail) / (1 + ratio)
            meets.add(TAIL_SHIFT_FROM + (1 - TAIL_SHIFT_FROM) * (1 - head / attention.head) / TAIL_SHIFT_MOST)
    inside = sorted(each for each in meets if low <= each <= high)
    return [*inside, *((one + two) / 2 for one, two in pairwise(inside))]


def pairs_whole(answer: Answer) -> Iterator[str]:
    """What belongs together stands together: nothing between a call and its results, and the call before them (A7); native ones as vendors
    demand.
    """
    yield from tied(answer.result.rendered.payload)
    order = [id for _, id in sorted((where[0], id) for id, where in answer.found.items() if where and id not in answer.in_authority)]
    at = {id: place for place, id in enumerate(order)}
    groups: dict[int, list[ContextUnit]] = {}
    for item in answer.case.request.items:
        if item.unit.id in at:
            groups.setdefault(item.group, []).append(item.unit)
    for members in groups.values():
        stand = sorted(at[member.id] for member in members)
        if stand[-1] - stand[0] != len(members) - 1:
            yield f"the {len(members)} units of a call and its results, {_shown(members[0].id)} among them, do not stand side by side"
    for id, unit in answer.units.items():
        if unit.kind is Kind.TOOL_RESULT and id in at:
            for relation in unit.relations:
                if relation.edge_type is EdgeType.CAUSATION and at.get(relation.target_id, -1) > at[id]:
                    yield f"the result {_shown(id)} stands before its call"


def authority(answer: Answer) -> Iterator[str]:
    """Where the model takes orders stand only constraints of normative or approved trust that nothing of the answer replaces (A9)."""
    for id in sorted(answer.in_authority - answer.rules):
        unit = answer.units[id]
        replaced = unit.kind is Kind.CONSTRAINT and unit.trust.authority
        why = "another of the answer replaces it" if replaced else f"it is {unit.kind}, {unit.trust}"
        yield f"unit {_shown(id)} stands in a place of authority, and {why}"


def counted(answer: Answer) -> Iterator[str]:
    """The count lies within its own bounds, and the bounds agree with the payload's texts counted again by the profile's tokenizer (A5)."""
    count, profile = answer.result.tokens, answer.adapter.profile
    if not 0 <= count.low <= count.value <= count.high:
        yield f"the value {count.value} is not within its bounds {count.low} to {count.high}"
    parts = count.parts
    if parts.content + parts.framing + parts.tools != count.value or min(parts.content, parts.framing, parts.tools) < 0:
        yield f"the parts {parts.content} + {parts.framing} + {parts.tools} are not the value {count.value}"
    if answer.units and not parts.content:
        yield "units were given, and none of the tokens count as content"
    counter = answer.subject.tokenizers.for_name(profile.tokenizer.encoding)
    # A value is held to the tokenizer only when both counted with its ranks; else the bounds alone must agree.
    exact = count.method is CountMethod.EXACT and counter.method is CountMethod.EXACT
    error = 0.0 if exact else CALIBRATED_ERROR
    factor = profile.tokenizer.factor
    texts = [place for place in answer.texts if not place.is_name]
    least = sum(counter.count(well_formed(place.text)) for place in texts) * factor
    frames = FRAME_TOKENS_A_TEXT * len(answer.texts) + FRAME_TOKENS
    most = least + sum(counter.count(well_formed(place.text)) for place in answer.texts if place.is_name) * factor + frames
    low, high = (count.low, count.high) if counter.method is CountMethod.EXACT else (0, math.inf)
    if exact and not least <= count.value <= most:
        yield f"the value {count.value} is exact, and the payload's texts have {least:.0f} tokens, {most:.0f} with the largest frame"
    if high < least * (1 - error) or low > most * (1 + error):
        yield f"the bounds {count.low} to {count.high} do not agree with the payload's texts: {least:.0f} to {most:.0f} tokens"
    if answer.case.plain and count.method is CountMethod.EXACT and exact:
        bodies = sum(counter.count(well_formed(unit_body(unit))) for unit in answer.units.values())
        if abs(parts.content - bodies) > bodies * CONTENT_ERROR + 2 * len(answer.units):
            yield f"{parts.content} tokens count as content, and the units' texts have {bodies}"


def foretold(answer: Answer) -> Iterator[str]:
    """What selection reckons with beforehand is enough: base and units together cost at least what the answer then costs."""
    if not answer.case.plain:
        return
    items, tokenizers = answer.case.request.items, answer.subject.tokenizers
    reckoned = answer.adapter.base_tokens(answer.case.request.question)
    for item in items:
        candidate = candidate_of(item.unit, tokenizers)
        may_be_native = answer.may_be_native(item.unit)
        reckoned += answer.adapter.unit_tokens(candidate, item.unit) if may_be_native else answer.adapter.unit_tokens(candidate)
    if answer.result.tokens.value > reckoned:
        yield f"the answer costs {answer.result.tokens.value} tokens, and `base_tokens` and `unit_tokens` foretold at most {reckoned}"
    if answer.result.tokens.method is CountMethod.EXACT and reckoned > answer.result.tokens.value * 2 + FRAME_TOKENS:
        yield f"the answer costs {answer.result.tokens.value} tokens, and {reckoned} were foretold: the budget would go unused"


def stable(answer: Answer) -> Iterator[str]:
    """The same request gives the same bytes: again, from copies, and from another adapter made alike."""
    first = _bytes(answer.result)
    request = answer.case.request
    if _bytes(answer.adapter.render(request)) != first:
        yield "the same request gave other bytes the second time"
    if _bytes(answer.subject.make().render(request)) != first:
        yield "another adapter, made alike, gave other bytes"


def _bytes(result: RenderResult) -> str:
    # Escaped, so that half a character, which another check names, does not end this one.
    return json.dumps([result.rendered.model_dump(mode="python"), result.tokens.model_dump(mode="json")], default=repr)


def candidate_of(unit: ContextUnit, tokenizers: Tokenizers) -> Candidate:
    """The unit as selection sees it."""
    metadata = unit.metadata
    when = metadata.timestamp or metadata.recorded_at
    assert when is not None, "the kit's units have a time"
    return Candidate(
        id=unit.id,
        kind=unit.kind,
        trust=unit.trust,
        epistemic_status=metadata.epistemic_status,
        agent_id=metadata.agent_id or "",
        actor=metadata.actor,
        timestamp=when,
        task_id=metadata.task_id,
        task_step=metadata.task_step,
        tool_name=metadata.tool.name if metadata.tool is not None else None,
        content_tokens=tokenizers.count_o200k(unit_body(unit)),
        score=1.0,
    )


def _shown(id: str) -> str:
    """An id as it may be printed."""
    return json.dumps(id)[:80]


CHECKS: dict[str, Callable[[Answer], Iterator[str]]] = {
    "sendable": sendable,
    "represented once": represented,
    "order is told": told_in_order,
    "priority order": priority,
    "pairs whole": pairs_whole,
    "authority": authority,
    "count within bounds": counted,
    "cost foretold": foretold,
    "same bytes": stable,
}
"""By the name that reports use. Vendor types and fences have modules of their own."""
