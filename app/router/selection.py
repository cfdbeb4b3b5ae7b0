"""Which units fit: best first under the budget, each with what it cannot stand without."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from app.governance.admission import Refused, admit, current, visible_superseders
from app.router.duplicates import said
from app.router.loading import Loaded, decided_by, depended_on
from app.router.planner import Plan
from graph.model.answer import LeftOut, LeftOutReason, PathStep
from graph.model.candidates import Candidate
from graph.model.query import ContextQuery
from graph.model.units import EdgeType, Kind, Trust
from graph.unit_rows import StoredUnit

# What a unit of each kind is worth beside another that was reached as well. A judgement, like the weights of edges.
KIND_WEIGHTS: dict[Kind, float] = {
    Kind.CORRECTION: 1.3,
    Kind.CONSTRAINT: 1.2,
    Kind.DECISION: 1.0,
    Kind.STATE_SNAPSHOT: 1.0,
    Kind.OBSERVATION: 0.95,
    Kind.TOOL_RESULT: 0.9,
    Kind.PROGRESS_NOTE: 0.75,
}

SEARCHED = frozenset({"text", "meaning", "neighbour", "name"})
"""Reasons of candidates that a search found."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One unit of the answer.

    ``block`` is shared by units that move as one: a call and its results. ``pick`` is shared by units that were chosen together:
    a unit with its pair and what it depends on; the last pick is the first to go when a payload turns out too long.
    """

    stored: StoredUnit
    score: float
    reason: str
    path: tuple[PathStep, ...]
    block: int
    pick: int
    tokens: int


@dataclass(slots=True)
class Selection:
    """The units of an answer in priority order, and the others with why not."""

    chosen: list[Chosen] = field(default_factory=list[Chosen])
    left_out: list[LeftOut] = field(default_factory=list[LeftOut])
    tokens: int = 0
    """Upper estimate in the target model's tokens, frame included."""
    shallow: bool = False
    """Whether some unit came with what it depends on directly, and not with what that depends on."""


def rank(candidates: Sequence[Candidate], query: ContextQuery) -> list[Candidate]:
    """Candidates of the kinds asked for, best first, scores on 0 to 1; equal ones by id, so that the same state gives the same answer."""
    weighted = [(item.score * KIND_WEIGHTS[item.kind], item) for item in candidates if query.kinds is None or item.kind in query.kinds]
    highest = max((score for score, _ in weighted), default=0.0) or 1.0
    weighted = [(highest if _applies(item) else score, item) for score, item in weighted]
    return sorted((item._replace(score=score / highest) for score, item in weighted), key=_priority)


def _applies(item: Candidate) -> bool:
    """Whether it is a rule of authority over what is asked about. It is worth as much as the best, or enough of agents' own constraints would
    push it out of a budget. A rule that a search came upon is one text among others: a tenant may hold hundreds that share a word with a topic.
    """
    return item.kind is Kind.CONSTRAINT and item.trust.authority and item.reason not in SEARCHED


def _priority(item: Candidate) -> tuple[float, int, str]:
    """Best first; of equals what is trusted more, then by id."""
    return (-item.score, item.trust.rank, item.id)


def select(plan: Plan, loaded: Loaded, unit_tokens: Callable[[Candidate], int]) -> Selection:
    """Fill the budget: by falling score, each unit with its pair and with what it depends on, or not at all.

    ``unit_tokens`` says what a unit costs in the payload. A superseded unit's place goes to the one that replaced it.
    """
    selection = Selection(tokens=plan.base_tokens())
    picker = _Picker(plan.query, loaded)
    chosen: set[str] = set()
    refused: set[str] = set()
    answer = _Said(loaded.units)
    for pick, item in enumerate(_with_superseders(loaded.considered, picker, refused, selection)):
        if item.id in chosen:
            continue
        block = picker.needs(item.id)
        if isinstance(block, Refused):
            selection.left_out.append(LeftOut(id=item.id, reason=block.reason))
            continue
        stored = loaded.units[item.id]
        if len(block) == 1 and answer.before(stored):
            selection.left_out.append(LeftOut(id=item.id, reason=LeftOutReason.DUPLICATE))
            continue
        new = [member for member in block if member not in chosen]
        costs = {member: unit_tokens(picker.head(member, item)) for member in new}
        if selection.tokens + sum(costs.values()) > plan.query.budget_tokens:
            selection.left_out.append(LeftOut(id=item.id, reason=LeftOutReason.BUDGET, tokens=sum(costs.values())))
            continue
        for member in new:
            chosen.add(member)
            member_unit = loaded.units[member]
            answer.add(member_unit)
            own = member == item.id
            selection.chosen.append(
                Chosen(
                    stored=member_unit,
                    score=item.score,
                    reason=item.reason if own else picker.why(member, item.id),
                    path=item.path if own else (),
                    block=picker.block_of(member),
                    pick=pick,
                    tokens=costs[member],
                )
            )
        selection.tokens += sum(costs.values())
    for item in loaded.beyond_budget:
        replaced = not plan.query.include_history and any(superseder in loaded.units for superseder in item.superseded_by)
        reason = LeftOutReason.SUPERSEDED if replaced else LeftOutReason.BUDGET
        selection.left_out.append(LeftOut(id=item.id, reason=reason, tokens=None if replaced else item.content_tokens))
    # What was first too large and then came along with another unit is in the answer after all; and each is counted once.
    left: dict[str, LeftOut] = {}
    for item in selection.left_out:
        if item.id not in chosen:
            left.setdefault(item.id, item)
    selection.left_out = list(left.values())
    selection.shallow = picker.shallow
    return selection


def _with_superseders(considered: Sequence[Candidate], picker: _Picker, refused: set[str], selection: Selection) -> list[Candidate]:
    """The candidates with each superseded one replaced by what is current, at the better of both scores."""
    best: dict[str, Candidate] = {}
    for item in considered:
        if item.id not in picker.loaded:
            continue  # erased, or out of sight, since the walk
        now = item
        if not picker.query.include_history:
            if picker.cut_short(item.id):
                selection.left_out.append(LeftOut(id=item.id, reason=LeftOutReason.INCOMPLETE))
                continue
            current_id = current(item.id, picker.loaded)
            if current_id != item.id:
                if item.id not in refused:
                    refused.add(item.id)
                    selection.left_out.append(LeftOut(id=item.id, reason=LeftOutReason.SUPERSEDED))
                step = PathStep(from_id=item.id, edge_type=EdgeType.SUPERSESSION, direction="in", to_id=current_id)
                now = picker.head(current_id, item, reason="superseder", path=(*item.path, step))
        known = best.get(now.id)
        if known is None or now.score > known.score:
            best[now.id] = now if known is None or known.reason == "superseder" else known._replace(score=now.score)
        elif known.reason == "superseder" and now.reason != "superseder":
            best[now.id] = now._replace(score=known.score)
    return sorted(best.values(), key=_priority)


class _Said:
    """What the answer says already. Not across trust: the same words of an agent must not stand in for a rule. Nor across time: what was true
    until it was replaced, and is true again, was so twice.
    """

    def __init__(self, loaded: Mapping[str, StoredUnit]) -> None:
        self._loaded = loaded
        self._of: dict[str, tuple[Kind, Trust, bytes] | None] = {}
        self._before: set[tuple[Kind, Trust, bytes]] = set()

    def before(self, stored: StoredUnit) -> bool:
        """Whether a unit that still holds says the same."""
        return self._says(stored) in self._before

    def add(self, stored: StoredUnit) -> None:
        """A unit that is chosen."""
        says = self._says(stored)
        if says is not None:
            self._before.add(says)

    def _says(self, stored: StoredUnit) -> tuple[Kind, Trust, bytes] | None:
        """None for what does not hold any more."""
        unit = stored.unit
        if unit.id not in self._of:
            ended = bool(visible_superseders(stored, self._loaded))
            self._of[unit.id] = None if ended else (unit.kind, unit.trust, said(unit.content))
        return self._of[unit.id]


class _Picker:
    """What a unit needs, over the units that were loaded for one answer."""

    def __init__(self, query: ContextQuery, loaded: Loaded) -> None:
        self.query = query
        self.loaded: Mapping[str, StoredUnit] = loaded.units
        self._unread = loaded.unread
        self._asked = loaded.asked
        self.shallow = False
        """Whether a unit came with its direct dependencies only."""
        self._pairs: dict[str, tuple[str, ...]] = {}
        self._blocks: dict[str, int] = {}

    def needs(self, unit_id: str) -> list[str] | Refused:
        """The unit with its pair and what it depends on, dependencies first; Refused when one of them may not enter.

        Dependencies are followed to their end where they were read that far; otherwise the unit comes with its direct ones.
        """
        whole = self._gathered(unit_id, deep=True)
        if whole is not None:
            return whole
        self.shallow = True
        direct = self._gathered(unit_id, deep=False)
        return direct if direct is not None else Refused(LeftOutReason.INCOMPLETE)

    def _gathered(self, unit_id: str, *, deep: bool) -> list[str] | Refused | None:
        """As ``needs``, to the end of all dependencies or the direct ones only; None when one of them was not read."""
        order: list[str] = []
        seen: set[str] = set()
        # Depth first without recursion: a chain of dependencies may be long. Ready is a unit whose needs are in the order already.
        stack: list[tuple[str, int, bool]] = [(unit_id, 0, False)]
        while stack:
            at, depth, ready = stack.pop()
            if ready:
                order.extend(member for member in self._pair(at) if member not in order)
                continue
            if at not in self._asked:
                return None
            if self.cut_short(at):
                return None if deep and depth > 0 else Refused(LeftOutReason.INCOMPLETE)
            if not self.query.include_history and at in self.loaded:
                at = current(at, self.loaded)
            if at in seen:
                continue
            pair = self._pair(at)
            seen.update(pair)
            for member in pair:
                refused = self._refusal(member)
                if refused is not None:
                    return refused if member == unit_id else Refused(LeftOutReason.INCOMPLETE)
            stack.append((at, depth, True))
            if deep or depth == 0:
                stack.extend((target, depth + 1, False) for member in pair for target in depended_on(self.loaded[member]))
        return order

    def _refusal(self, unit_id: str) -> Refused | None:
        """Why a unit may not enter, if it may not."""
        stored = self.loaded.get(unit_id)
        if stored is None or self.cut_short(unit_id):
            return Refused(LeftOutReason.INCOMPLETE)
        verdict = admit(stored, self.loaded, self.query)
        return verdict if isinstance(verdict, Refused) else None

    def cut_short(self, unit_id: str) -> bool:
        """Whether something that decides about a unit, or about one that replaced it, was not read."""
        if not self._unread:
            return False
        seen: set[str] = set()
        pending = [unit_id]
        while pending:
            at = pending.pop()
            stored = self.loaded.get(at)
            if stored is None or at in seen:
                continue
            seen.add(at)
            if not self._unread.isdisjoint(decided_by(stored)):
                return True
            if not self.query.include_history:
                pending.extend(stored.superseder_ids)
        return False

    def _pair(self, unit_id: str) -> tuple[str, ...]:
        """A call with its results, call first; a unit that is neither stands alone. A result that two calls share brings both."""
        known = self._pairs.get(unit_id)
        if known is not None:
            return known
        calls: dict[str, None] = {}
        results: set[str] = set()
        pending = [self._call_of(unit_id)]
        while pending:
            call_id = pending.pop()
            if call_id in calls:
                continue
            calls[call_id] = None
            stored = self.loaded.get(call_id)
            new = {result for result in (stored.result_ids if stored is not None else ()) if result in self.loaded} - results
            results |= new
            pending.extend(self._call_of(result) for result in sorted(new))
        pair = (*calls, *sorted(results - calls.keys()))
        for member in pair:
            self._pairs[member] = pair
            self._blocks[member] = len(self._pairs)
        return pair

    def _call_of(self, unit_id: str) -> str:
        stored = self.loaded.get(unit_id)
        if stored is None or stored.unit.kind is not Kind.TOOL_RESULT:
            return unit_id
        for relation in stored.unit.relations:
            call = self.loaded.get(relation.target_id)
            if relation.edge_type is EdgeType.CAUSATION and call is not None and unit_id in call.result_ids:
                return call.unit.id
        return unit_id

    def block_of(self, unit_id: str) -> int:
        """Equal for units of one pair."""
        self._pair(unit_id)
        return self._blocks[self._pairs[unit_id][0]]

    def why(self, member: str, asked_for: str) -> str:
        """Why a unit came along with another."""
        return "pair" if self._pair(member) == self._pair(asked_for) else "required"

    def head(self, unit_id: str, like: Candidate, *, reason: str = "required", path: tuple[PathStep, ...] = ()) -> Candidate:
        """A loaded unit as a candidate, with another's score."""
        if unit_id == like.id:
            return like
        stored = self.loaded[unit_id]
        unit, metadata = stored.unit, stored.unit.metadata
        assert metadata.agent_id is not None
        assert metadata.timestamp is not None
        return Candidate(
            id=unit.id,
            kind=unit.kind,
            trust=unit.trust,
            epistemic_status=metadata.epistemic_status,
            agent_id=metadata.agent_id,
            actor=metadata.actor,
            timestamp=metadata.timestamp,
            task_id=metadata.task_id,
            task_step=metadata.task_step,
            tool_name=metadata.tool.name if metadata.tool is not None else None,
            content_tokens=stored.content_tokens,
            score=like.score,
            path=path,
            reason=reason,
            superseded_by=tuple(other for other in stored.superseder_ids if other in self.loaded),
            results=tuple(other for other in stored.result_ids if other in self.loaded),
        )
