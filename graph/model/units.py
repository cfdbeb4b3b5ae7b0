"""The neutral format (U1): a context unit, its metadata and its edges. This is the system of record."""

from __future__ import annotations

import hashlib
import math
from enum import StrEnum
from typing import Annotated, Any, Self

import orjson
from pydantic import AfterValidator, BeforeValidator, Field, JsonValue
from pydantic_core import PydanticCustomError

from graph.model.base import Id, Model, ShortText, Text, Timestamp

MAX_BATCH = 10_000
"""Bound of the form; the service's own limit is a setting and lower."""
MAX_RELATIONS = 64
MAX_PROVENANCE = 32
MAX_LABELS = 32
MAX_ATTACHMENTS = 32
MAX_ARGUMENT_LEVELS = 32
MAX_ARGUMENT_BYTES = 256 * 1024


class Described(StrEnum):
    """A closed set of words, each with when to use it; the schema carries both."""

    use: str

    def __new__(cls, value: str, use: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.use = use
        return member


class Kind(Described):
    """What a unit is. The set is closed (U2)."""

    TOOL_RESULT = "tool_result", "What a tool returned. Caused by the decision that called it."
    DECISION = "decision", "What an agent chose to do and why, a tool call among them."
    STATE_SNAPSHOT = "state_snapshot", "How things stood at a moment, read from their authority."
    PROGRESS_NOTE = "progress_note", "What an agent says of its own progress; helps the same session, seldom others."
    CONSTRAINT = "constraint", "What must hold: a rule, a limit, an instruction of the operator."
    CORRECTION = "correction", "What replaces something that was wrong; usually with a supersession edge to it."
    OBSERVATION = "observation", "What was seen or said: a user's turn, a fact, a finding."


ALL_KINDS: tuple[str, ...] = tuple(kind.value for kind in Kind)
"""As statements and the wire name them."""


class EdgeType(Described):
    """How a unit relates to one that came before it. The set is closed (U4)."""

    DEPENDENCY = "dependency", "It needs the other to be understood or carried out."
    PROVENANCE = "provenance", "It was made from the other."
    SUPERSESSION = "supersession", "It replaces the other."
    CAUSATION = "causation", "The other made it happen."


class EpistemicStatus(Described):
    """How sure it is (U5)."""

    CONFIRMED = "confirmed", "Checked against its source or by a person."
    TENTATIVE = "tentative", "Said, not yet checked. The default."
    INFERRED = "inferred", "Concluded from other units."
    CONTESTED = "contested", "Another unit says otherwise and nobody has decided."
    RETRACTED = "retracted", "Taken back by who said it; never part of an answer."


class Tier(Described):
    """How near at hand a unit is kept."""

    HOT = "hot", "Recent or in use. The default."
    WARM = "warm", "Aged, still quickly found."
    COLD = "cold", "Old and unused; reachable, not in the indexes that must stay small."


class Trust(Described):
    """Trust levels, highest first (C2). A lower one never overrides a higher one."""

    NORMATIVE = "normative", "Published reference data: standards, catalogues. Written by a publisher alone."
    APPROVED_ARTIFACT = "approved_artifact", "Work that a person approved."
    DRAFT = "draft", "Work under way, not approved."
    EVIDENCE_CANDIDATE = "evidence_candidate", "Text from documents and searches; evidence, never an instruction."
    AGENT_OUTPUT = "agent_output", "What an agent said or did. The default."

    @property
    def rank(self) -> int:
        """0 for the highest level."""
        return _TRUST_RANKS[self]

    @property
    def authority(self) -> bool:
        """Whether a constraint of this level may stand where a model takes orders."""
        return self in {Trust.NORMATIVE, Trust.APPROVED_ARTIFACT}


_TRUST_RANKS = {trust: rank for rank, trust in enumerate(Trust)}


def _storable_arguments(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The arguments when they come back from the database as they were."""
    pending: list[tuple[JsonValue, int]] = [(arguments, 1)]
    while pending:
        value, level = pending.pop()
        if level > MAX_ARGUMENT_LEVELS:
            raise PydanticCustomError("too_large", "nested too deeply")
        if isinstance(value, dict):
            pending.extend((inner, level + 1) for inner in value.values())
        elif isinstance(value, list):
            pending.extend((inner, level + 1) for inner in value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise PydanticCustomError("invalid_field", "not a finite number")
        elif isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise PydanticCustomError("invalid_field", "an integer over 64 bits")
    if len(orjson.dumps(arguments)) > MAX_ARGUMENT_BYTES:
        raise PydanticCustomError("too_large", "over the limit of arguments")
    return arguments


class Tool(Model):
    """What a native tool call needs (U3): on a decision the call, on a tool_result which call it answers."""

    name: ShortText
    call_id: Id | None = None
    arguments: Annotated[dict[str, JsonValue], AfterValidator(_storable_arguments)] | None = Field(
        default=None, description="The call's arguments, as the tool takes them: at most 32 levels and 256 KiB, integers of 64 bits."
    )


def _source_from_text(value: Any) -> Any:
    return {"source": value} if isinstance(value, str) else value


class ProvenanceSource(Model):
    """Where something outside the graph came from. A plain string is short for ``{"source": …}``."""

    source: ShortText
    uri: ShortText | None = None
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    locator: ShortText | None = Field(default=None, description="Where in the source: a page, a line, a chunk id.")
    method: ShortText | None = Field(default=None, description="How it was obtained: search, upload, tool name.")


class Attachment(Model):
    """Reference to an original that is not text (U3, U14); the unit's content describes it in words."""

    uri: ShortText
    media_type: Annotated[str, Field(pattern=r"^[\w.+-]+/[\w.+-]+$", max_length=128)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Relation(Model):
    """One edge, from the unit that carries it to one that came before."""

    target_id: Id
    edge_type: EdgeType


class Scope(Model):
    """Where a unit belongs inside its tenant (T5). Empty outside assessments."""

    organization_id: Id | None = None
    assessment_id: Id | None = None


class Ownership(Model):
    """Who wrote a unit (T1). Comes from the key and the headers, never from the body."""

    tenant_id: Id
    agent_id: Id
    session_id: Id | None = None
    model: ShortText | None = None


class Metadata(Model):
    """Facts about a unit that are not its content."""

    timestamp: Timestamp | None = Field(default=None, description="When it happened; the time of recording when left out.")
    recorded_at: Timestamp | None = Field(default=None, description="When it was recorded. Set by the service, ignored on write.")
    agent_id: Id | None = Field(default=None, description="The agent that wrote it: the key's own.")
    actor: ShortText | None = Field(default=None, description="Who said it when not the agent: a user, a person, another system.")
    session_id: Id | None = None
    task_id: Id | None = Field(default=None, description="The task it belongs to.")
    task_step: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(default=None, description="The step of the task.")
    epistemic_status: EpistemicStatus = EpistemicStatus.TENTATIVE
    provenance: Annotated[
        list[Annotated[ProvenanceSource, BeforeValidator(_source_from_text, json_schema_input_type=str | ProvenanceSource)]],
        Field(max_length=MAX_PROVENANCE),
    ] = Field(default_factory=list[ProvenanceSource])
    relevance_score: Annotated[float, Field(ge=0, le=1)] | None = None
    tier: Tier = Field(default=Tier.HOT, description="Where it begins, on writing; where it stands now, on reading.")
    tool: Tool | None = None
    source_erased: bool = Field(
        default=False,
        description="Whether something that it was made from, needs, replaces or was caused by has been erased. Set by the service, ignored on write.",
    )


class ContextUnit(Model):
    """One thing that is known, in plain text or markdown, with where it came from and what it relates to."""

    id: Id
    kind: Kind
    content: Text
    metadata: Metadata = Field(default_factory=Metadata)
    relations: Annotated[list[Relation], Field(max_length=MAX_RELATIONS)] = Field(default_factory=list[Relation])
    scope: Scope = Field(default_factory=Scope)
    trust: Trust = Trust.AGENT_OUTPUT
    labels: Annotated[list[Id], Field(max_length=MAX_LABELS)] = Field(default_factory=list[str])
    attachments: Annotated[list[Attachment], Field(max_length=MAX_ATTACHMENTS)] = Field(default_factory=list[Attachment])
    owner: Ownership | None = Field(default=None, description="Set by the service; a differing one is refused on write.")


class UnitBatch(Model):
    """What ``POST /v1/units`` takes: all are stored, or none."""

    units: Annotated[list[ContextUnit], Field(min_length=1, max_length=MAX_BATCH, fail_fast=True)]


class WriteResult(Model):
    """How many units were new, how many were there already, and all their ids in the order sent."""

    written: int
    unchanged: int
    ids: list[str]


def digest(unit: ContextUnit) -> str:
    """SHA-256 (hex) of what makes two writes of an id the same unit (U8).

    Left out is what the service sets itself or may change: owner, recorded_at, source_erased, tier and
    relevance_score.
    Order of relations and labels does not count, nor a relation said twice.
    """
    metadata, tool = unit.metadata, unit.metadata.tool
    # Field by field: dumping the model took half of the processor's time of a write (docs/benchmarks.md).
    said = [
        unit.kind,
        unit.content,
        None if metadata.timestamp is None else metadata.timestamp.isoformat(),
        metadata.agent_id,
        metadata.actor,
        metadata.session_id,
        metadata.task_id,
        metadata.task_step,
        metadata.epistemic_status,
        [source.model_dump() for source in metadata.provenance],
        None if tool is None else [tool.name, tool.call_id, tool.arguments],
        sorted({(relation.edge_type.value, relation.target_id) for relation in unit.relations}),
        unit.scope.organization_id,
        unit.scope.assessment_id,
        unit.trust,
        sorted(unit.labels),
        [attachment.model_dump() for attachment in unit.attachments],
    ]
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()


def digest_without_time(unit: ContextUnit) -> str:
    """The digest as if the unit had been written without a timestamp."""
    return digest(unit.model_copy(update={"metadata": unit.metadata.model_copy(update={"timestamp": None})}))


class UnitPage(Model):
    """A page of units, newest first; ``next`` is the cursor of the page after it, if there may be one."""

    units: list[ContextUnit]
    next: str | None = None
