"""Transcripts in OpenAI's chat form as units (A8): the same run always becomes the same units, and a longer one begins with the same.

System text is a constraint, a user's turn an observation, an assistant's text a progress note. Each tool call is a decision and causes its
result. A turn is caused by what it answers. Steps count the assistant's turns from 1; what came before the first is step 0, a user's
turn has the step of the turn that answers it, a result the step of its call.

Any message may carry hints: ``id`` (to be named by later ones), ``kind`` (of its text), ``supersedes``, ``depends_on`` and
``derived_from`` (ids of earlier messages, also of earlier runs of the task), ``epistemic_status``, ``timestamp``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeVar

from pydantic import JsonValue

from adapters.importers.chat_messages import Message, Said, ToolCall, call_id, said, short, tool_calls, tool_said, when
from adapters.importers.neutral import neutral_text
from adapters.importers.transcript_files import Run, clean_id, first_part, read_runs, unit_id
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

__all__ = ["Conversion", "Run", "convert", "read_runs", "run_to_units"]

MAX_CAUSES: Final = 16
MAX_HINTED: Final = 32
NOTE_ORPHAN: Final = "a tool result without a call was caused by what stood before it"
NOTE_NOTHING_SAID: Final = "a message that says nothing was left out"
NOTE_FILES: Final = "files over the number a unit may have were left out"
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
AnyEnum = TypeVar("AnyEnum", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The units of a run, each after all that it points to, and how often something had to be changed."""

    units: list[ContextUnit]
    notes: Counter[str]


@dataclass(frozen=True, slots=True)
class _Turn:
    """A message with what its units share."""

    index: int
    message: Message
    step: int
    actor: str | None
    causes: list[str]


@dataclass(slots=True)
class _Open:
    """A call that may still be answered."""

    unit: str
    name: str
    call_id: str | None
    step: int
    answered: bool = False


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
    for index, message in enumerate(run.messages):
        converter.add(index, message)
    return Conversion(converter.units, +converter.notes)


@dataclass(slots=True)
class _Converter:
    run: Run
    actor_user: str
    units: list[ContextUnit] = field(default_factory=list[ContextUnit])
    notes: Counter[str] = field(default_factory=Counter[str])
    step: int = field(init=False)
    known: dict[str, str] = field(init=False)
    calls: list[_Open] = field(default_factory=list[_Open])
    answered_by_next: list[str] = field(default_factory=list[str])
    """What the assistant's next turn answers: results and user turns since its last."""
    last_turn: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.step = self.run.first_step
        self.known = dict(self.run.known)

    def add(self, index: int, raw: JsonValue) -> None:
        """The units of one message."""
        if not isinstance(raw, dict):
            raise self._refused(index, "is no object")
        role = raw.get("role")
        if role not in _ROLES:
            raise self._refused(index, "has an unknown role")
        before = len(self.units)
        if role == "assistant":
            self._assistant(index, raw)
        elif role in {"tool", "function"}:
            self._result(index, raw)
        elif role == "user":
            actor = short(raw.get("name"), self.actor_user)
            self._spoken(_Turn(index, raw, self.step + 1, actor, self.last_turn), Kind.OBSERVATION)
            self.answered_by_next += [unit.id for unit in self.units[before:]]
        else:
            step = self.step if self.step == self.run.first_step else self.step + 1
            self._spoken(_Turn(index, raw, step, str(role), []), Kind.CONSTRAINT)
        name = raw.get("id")
        if isinstance(name, str) and len(self.units) > before:
            self.known[name] = self.units[before].id

    def _spoken(self, turn: _Turn, kind: Kind) -> None:
        spoken = said(turn.message, self.notes)
        if spoken.text:
            self._unit(turn, kind, spoken)
        else:
            self.notes[NOTE_NOTHING_SAID] += 1

    def _assistant(self, index: int, message: Message) -> None:
        self.step += 1
        try:
            calls = tool_calls(message, self.notes)
        except ValueError as failure:
            raise self._refused(index, f"has a wrong {failure}") from None
        turn = _Turn(
            index, message, self.step, short(message.get("name"), "") or None, self.answered_by_next[-MAX_CAUSES:] or self.last_turn
        )
        spoken = said(message, self.notes)
        before = len(self.units)
        if not calls and not spoken.text:
            self.notes[NOTE_NOTHING_SAID] += 1
            return
        if spoken.text and (not calls or first_part(message) == "text"):
            turn = replace(turn, causes=[self._unit(turn, Kind.PROGRESS_NOTE, spoken)])
            spoken = Said("")
        for number, call in enumerate(calls, 1):
            self._call(turn, call, number, spoken if number == 1 else Said(""), hinted=len(self.units) == before)
        self.last_turn = [unit.id for unit in self.units[before:]][-MAX_CAUSES:]
        self.answered_by_next = []

    def _call(self, turn: _Turn, call: ToolCall, number: int, spoken: Said, *, hinted: bool) -> None:
        if not spoken.text:
            text, changed = neutral_text(f"Calls {call.name}.")
            self.notes.update(changed)
            spoken = replace(spoken, text=text)
        part = first_part(turn.message) if hinted else "call" if number == 1 else f"call-{number:03d}"
        tool = Tool(name=call.name, call_id=call.call_id, arguments=call.arguments)
        unit = self._unit(turn, Kind.DECISION, spoken, hinted=hinted, tool=tool, part=part)
        self.calls.append(_Open(unit, call.name, call.call_id, self.step))

    def _result(self, index: int, message: Message) -> None:
        name = short(message.get("name"), "")
        answers = call_id(message.get("tool_call_id"))
        call = self._called(answers, name)
        if call is None:
            self.notes[NOTE_ORPHAN] += 1
            causes = [self.units[-1].id] if self.units else []
        else:
            call.answered = True
            causes = [call.unit]
        turn = _Turn(index, message, call.step if call else self.step, None, causes)
        tool = Tool(name=name or (call.name if call else "unknown"), call_id=answers or (call.call_id if call else None))
        self.answered_by_next.append(self._unit(turn, Kind.TOOL_RESULT, tool_said(message, self.notes), tool=tool))

    def _called(self, answers: str | None, name: str) -> _Open | None:
        """The call that a result answers: by id, else by name, in the latest turn that has one unanswered, there the first."""
        if answers is not None:
            same = [call for call in self.calls if call.call_id == answers]
            waiting = [call for call in same if not call.answered] or same[-1:]
            waiting = [call for call in waiting if call.name == name] or waiting
            if not waiting:
                waiting = [call for call in self.calls if call.call_id is None and not call.answered and name in {"", call.name}]
        else:
            waiting = [call for call in self.calls if not call.answered and name in {"", call.name}]
        return next((call for call in waiting if call.step == waiting[-1].step), None)

    def _unit(
        self, turn: _Turn, kind: Kind, spoken: Said, *, hinted: bool = True, tool: Tool | None = None, part: str | None = None
    ) -> str:
        relations = [Relation(target_id=target, edge_type=EdgeType.CAUSATION) for target in turn.causes[-MAX_CAUSES:]]
        status = EpistemicStatus.TENTATIVE
        if hinted:
            relations += self._hinted(turn, "supersedes", EdgeType.SUPERSESSION)
            relations += self._hinted(turn, "depends_on", EdgeType.DEPENDENCY)
            relations += self._hinted(turn, "derived_from", EdgeType.PROVENANCE)
            status = self._named(turn, "epistemic_status", EpistemicStatus) or status
            kind = (self._named(turn, "kind", Kind) if tool is None else None) or kind
        if len(spoken.attachments) > MAX_ATTACHMENTS or len(spoken.sources) >= MAX_PROVENANCE:
            self.notes[NOTE_FILES] += 1
        source = ProvenanceSource(source="openai-chat", locator=f"{self.run.key}#{turn.index}")
        unit = ContextUnit(
            id=unit_id(self.run.key, turn.index, part or first_part(turn.message)),
            kind=kind,
            content=spoken.text,
            metadata=Metadata(
                timestamp=when(turn.message, self.notes),
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
            attachments=spoken.attachments[:MAX_ATTACHMENTS],
        )
        self.units.append(unit)
        return unit.id

    def _hinted(self, turn: _Turn, name: str, edge_type: EdgeType) -> list[Relation]:
        value = turn.message.get(name)
        names = [value] if isinstance(value, str) else value
        if names is None:
            return []
        if not isinstance(names, list) or len(names) > MAX_HINTED:
            raise self._refused(turn.index, f"has a wrong {name}")
        targets = [self.known.get(target) if isinstance(target, str) else None for target in names]
        if None in targets:
            raise self._refused(turn.index, f"names in {name} a message that does not come before it")
        return [Relation(target_id=target, edge_type=edge_type) for target in dict.fromkeys(targets) if target is not None]

    def _named(self, turn: _Turn, name: str, names: type[AnyEnum]) -> AnyEnum | None:
        value = turn.message.get(name)
        if value is None:
            return None
        if not isinstance(value, str) or value not in set(names):
            raise self._refused(turn.index, f"has an unknown {name}")
        return names(value)

    def _refused(self, index: int, why: str) -> errors.LastroError:
        return errors.ImportRefused(f"Message {index} of run {self.run.key} {why}.").at(index=self.run.line, field=f"messages.{index}")
