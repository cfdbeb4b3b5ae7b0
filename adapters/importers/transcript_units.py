"""A transcript as units (A8), from whichever vendor: the same run always becomes the same units, and a longer one begins with the same.

System text is a constraint, a user's turn an observation, an assistant's text a progress note, and so is its reasoning, where the vendor
shows it (docs/decisions/0016). Each tool call is a decision and causes its result. A turn is caused by what it answers. Steps count the
assistant's turns from 1; what came before the first is step 0, a user's turn has the step of the turn that answers it, a result the step
of its call. A request that failed is an observation that says so.

In OpenAI's chat form any message may carry hints: ``id`` (to be named by later ones), ``kind`` (of its text), ``supersedes``, ``depends_on``
and ``derived_from`` (ids of earlier messages, also of earlier runs of the task), ``epistemic_status``, ``timestamp``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeVar

from adapters.importers.neutral import neutral_text
from adapters.importers.spoken import Original, Said, said, tool_said
from adapters.importers.transcript_files import Run, call_part, clean_id, first_part, unit_id
from adapters.transcripts.matching import Matching
from adapters.transcripts.model import Call, Result, Text, Thought, Turn
from graph.model import errors
from graph.model.units import (
    MAX_ATTACHMENTS,
    MAX_PROVENANCE,
    ContextUnit,
    EdgeType,
    EpistemicStatus,
    Kind,
    Metadata,
    ProvenanceSource,
    Relation,
    Tool,
)

MAX_CAUSES: Final = 16
MAX_HINTED: Final = 32
NOTE_ORPHAN: Final = "a tool result without a call was caused by what stood before it"
NOTE_NOTHING_SAID: Final = "a message that says nothing was left out"
NOTE_FILES: Final = "files over the number a unit may have were left out"
NOTE_FAILED: Final = "a request that failed has no answer"
REASONING: Final = "analysis"
"""Of the id of a unit of reasoning; it sorts before the other parts of its turn."""
REASONING_METHOD: Final = "reasoning"
"""``method`` of the provenance of a unit of reasoning."""
AnyEnum = TypeVar("AnyEnum", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The units of a run, each after all that it points to, and how often something had to be changed."""

    units: list[ContextUnit]
    notes: Counter[str]
    originals: list[Original]
    """The bytes behind the attachments of the units, for a store of originals."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn with what its units share."""

    index: int
    said: Turn
    step: int
    actor: str | None
    causes: list[str]


@dataclass(frozen=True, slots=True)
class _Made:
    """A call that may be answered."""

    unit: str
    name: str
    call_id: str | None
    step: int


def run_to_units(run: Run, *, session_id: str | None = None, task_id: str | None = None, actor_user: str = "user") -> list[ContextUnit]:
    """The units of ``convert`` without its notes."""
    return convert(run, session_id=session_id, task_id=task_id, actor_user=actor_user).units


def convert(run: Run, *, session_id: str | None = None, task_id: str | None = None, actor_user: str = "user") -> Conversion:
    """The run as units. ``session_id`` and ``task_id`` replace the run's own; ``actor_user`` is who speaks as a user without a name.

    Raises ImportRefused, naming run and message, when a message is no object, has an unknown role or names one that is not before it.
    """
    if task_id is not None:
        task = clean_id(task_id)
        run = replace(run, key=task if run.key == run.task_id else run.key, task_id=task)
    if session_id is not None:
        run = replace(run, session_id=clean_id(session_id))
    converter = _Converter(run, actor_user)
    for index, turn in enumerate(run.turns(converter.notes)):
        converter.add(index, turn)
    return Conversion(converter.units, +converter.notes, converter.originals)


@dataclass(slots=True)
class _Converter:
    run: Run
    actor_user: str
    units: list[ContextUnit] = field(default_factory=list[ContextUnit])
    notes: Counter[str] = field(default_factory=Counter[str])
    originals: list[Original] = field(default_factory=list[Original])
    step: int = field(init=False)
    known: dict[str, str] = field(default_factory=dict[str, str])
    """Unit ids by the ids of the run's own messages; those of earlier runs stay with the run, which all of a task share."""
    calls: Matching[_Made] = field(default_factory=Matching["_Made"])
    answered_by_next: list[str] = field(default_factory=list[str])
    """What the assistant's next turn answers: results and user turns since its last."""
    last_turn: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.step = self.run.first_step
        for call in self.run.earlier:
            self._called(call.unit, call.name, call.call_id)

    def add(self, index: int, said_then: Turn) -> None:
        """The units of one turn."""
        before = len(self.units)
        match said_then.role:
            case "assistant":
                self._assistant(index, said_then)
            case "tool":
                self._result(index, said_then)
            case "user":
                self._spoken(_Turn(index, said_then, self.step + 1, said_then.name or self.actor_user, self.last_turn), Kind.OBSERVATION)
                self.answered_by_next += [unit.id for unit in self.units[before:]]
            case "error":
                self.notes[NOTE_FAILED] += 1
                causes = self.answered_by_next[-MAX_CAUSES:] or self.last_turn
                self._spoken(_Turn(index, said_then, self.step + 1, self.run.form, causes), Kind.OBSERVATION)
            case _:
                step = self.step if self.step == self.run.first_step else self.step + 1
                self._spoken(_Turn(index, said_then, step, said_then.name or "system", []), Kind.CONSTRAINT)
        name = said_then.hints.get("id")
        own = f":{REASONING}"
        named = next((unit.id for unit in self.units[before:] if not unit.id.endswith(own)), None)
        if isinstance(name, str) and named is not None:
            self.known[name] = named

    def _spoken(self, turn: _Turn, kind: Kind) -> None:
        spoken = said(turn.said.parts, self.notes)
        if spoken.text:
            self._unit(turn, kind, spoken)
        else:
            self.notes[NOTE_NOTHING_SAID] += 1

    def _assistant(self, index: int, message: Turn) -> None:
        self.step += 1
        calls = [part for part in message.parts if isinstance(part, Call)]
        turn = _Turn(index, message, self.step, message.name, self.answered_by_next[-MAX_CAUSES:] or self.last_turn)
        spoken = said([part for part in message.parts if not isinstance(part, Call | Thought)], self.notes)
        before = len(self.units)
        reasoning = self._reasoning(turn)
        if not calls and not spoken.text:
            if not reasoning:
                self.notes[NOTE_NOTHING_SAID] += 1
                return
        else:
            turn = replace(turn, causes=[*turn.causes[-(MAX_CAUSES - len(reasoning)) :], *reasoning])
            own = len(self.units)
            if spoken.text and (not calls or first_part(message) == "text"):
                turn = replace(turn, causes=[self._unit(turn, Kind.PROGRESS_NOTE, spoken)])
                spoken = Said("")
            for number, call in enumerate(calls, 1):
                self._call(turn, call, number, spoken if number == 1 else Said(""), hinted=len(self.units) == own)
        self.last_turn = [unit.id for unit in self.units[before:]][-MAX_CAUSES:]
        self.answered_by_next = []

    def _reasoning(self, turn: _Turn) -> list[str]:
        """The unit of what the assistant thought, when that is known."""
        thoughts = [Text(part.text) for part in turn.said.parts if isinstance(part, Thought)]
        spoken = said(thoughts, self.notes)
        if not spoken.text:
            return []
        return [self._unit(turn, Kind.PROGRESS_NOTE, spoken, hinted=False, part=REASONING, method=REASONING_METHOD)]

    def _call(self, turn: _Turn, call: Call, number: int, spoken: Said, *, hinted: bool) -> None:
        if not spoken.text:
            text, changed = neutral_text(f"Calls {call.name}.")
            self.notes.update(changed)
            spoken = replace(spoken, text=text)
        part = first_part(turn.said) if hinted else call_part(number)
        tool = Tool(name=call.name, call_id=call.call_id, arguments=call.arguments)
        unit = self._unit(turn, Kind.DECISION, spoken, hinted=hinted, tool=tool, part=part)
        self._called(unit, call.name, call.call_id)

    def _called(self, unit: str, name: str, call_id: str | None) -> None:
        self.calls.add(_Made(unit, name, call_id, self.step), name=name, call_id=call_id, turn=self.step)

    def _result(self, index: int, message: Turn) -> None:
        part = message.parts[0]
        assert isinstance(part, Result)
        name = part.name or ""
        call = self.calls.answered_by(part.call_id, name)
        if call is None:
            self.notes[NOTE_ORPHAN] += 1
            causes = [self.units[-1].id] if self.units else []
        else:
            causes = [call.unit]
        turn = _Turn(index, message, call.step if call else self.step, None, causes)
        tool = Tool(name=name or (call.name if call else "unknown"), call_id=part.call_id or (call.call_id if call else None))
        self.answered_by_next.append(self._unit(turn, Kind.TOOL_RESULT, tool_said(part, self.notes), tool=tool))

    def _unit(
        self,
        turn: _Turn,
        kind: Kind,
        spoken: Said,
        *,
        hinted: bool = True,
        tool: Tool | None = None,
        part: str | None = None,
        method: str | None = None,
    ) -> str:
        relations = [Relation(target_id=target, edge_type=EdgeType.CAUSATION) for target in turn.causes[-MAX_CAUSES:]]
        status = EpistemicStatus.TENTATIVE
        if hinted:
            relations += self._hinted(turn, "supersedes", EdgeType.SUPERSESSION)
            relations += self._hinted(turn, "depends_on", EdgeType.DEPENDENCY)
            relations += self._hinted(turn, "derived_from", EdgeType.PROVENANCE)
            status = self._named(turn, "epistemic_status", EpistemicStatus) or status
            kind = (self._named(turn, "kind", Kind) if tool is None else None) or kind
        if len(spoken.originals) > MAX_ATTACHMENTS or len(spoken.sources) >= MAX_PROVENANCE:
            self.notes[NOTE_FILES] += 1
        source = ProvenanceSource(source=self.run.form, locator=f"{self.run.key}#{turn.index}", method=method)
        own_id = unit_id(self.run.key, turn.index, part or first_part(turn.said))
        unit = ContextUnit(
            id=own_id,
            kind=kind,
            content=spoken.text,
            metadata=Metadata(
                timestamp=turn.said.time,
                agent_id=self.run.agent_id,
                actor=turn.actor,
                session_id=self.run.session_id,
                task_id=self.run.task_id,
                task_step=turn.step,
                epistemic_status=status,
                provenance=[source, *spoken.sources[: MAX_PROVENANCE - 1]],
                tool=tool,
            ),
            relations=relations,
            attachments=[original.attachment for original in spoken.originals[:MAX_ATTACHMENTS]],
        )
        self.units.append(unit)
        self.originals += [replace(original, unit_id=own_id) for original in spoken.originals[:MAX_ATTACHMENTS]]
        return unit.id

    def _hinted(self, turn: _Turn, name: str, edge_type: EdgeType) -> list[Relation]:
        value = turn.said.hints.get(name)
        names = [value] if isinstance(value, str) else value
        if names is None:
            return []
        if not isinstance(names, list) or len(names) > MAX_HINTED:
            raise self._refused(turn.index, f"has a wrong {name}")
        targets = [self.known.get(target) or self.run.known.get(target) if isinstance(target, str) else None for target in names]
        if None in targets:
            raise self._refused(turn.index, f"names in {name} a message that does not come before it")
        return [Relation(target_id=target, edge_type=edge_type) for target in dict.fromkeys(targets) if target is not None]

    def _named(self, turn: _Turn, name: str, names: type[AnyEnum]) -> AnyEnum | None:
        value = turn.said.hints.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or value not in set(names):
            raise self._refused(turn.index, f"has an unknown {name}")
        return names(value)

    def _refused(self, index: int, why: str) -> errors.LastroError:
        return errors.ImportRefused(f"Message {index} of run {self.run.key} {why}.").at(index=self.run.line, field=f"messages.{index}")
