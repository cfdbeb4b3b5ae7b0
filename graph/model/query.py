"""What an agent asks: which step of which task, for which model, within which budget and time."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from graph.model.base import Id, Model, ShortText, Text, Timestamp
from graph.model.units import Kind

DEFAULT_BUDGET_TOKENS = 2_000
DEFAULT_DEADLINE_MS = 500


class StrategyName(StrEnum):
    """How candidates are found. ``auto`` lets the query's type decide."""

    AUTO = "auto"
    TRAVERSAL = "traversal"
    """From a task or unit along weighted edges."""
    RECENCY = "recency"
    """The newest units of the session or task; the simplest strategy, and the fallback of others."""
    RETRIEVAL = "retrieval"
    """Search by words and by meaning, with what stands beside and what shares a name."""
    TEXT = "text"
    """Search by words alone; the fallback of retrieval."""
    HYBRID = "hybrid"
    """Traversal, tiers and retrieval in one, each as far as the query gives it something to start from."""
    TIERS = "tiers"
    """What is hot in the session, then what is warm, then what is cold; the newest first in each."""


class QueryType(StrEnum):
    """What is asked about, decided by which fields are given."""

    AROUND_UNIT = "around_unit"
    AROUND_TASK = "around_task"
    STEP = "step"
    SESSION = "session"
    TOPIC = "topic"
    TOPIC_AROUND = "topic_around"
    """A topic together with a unit, task, step or session."""


class ToolPairs(StrEnum):
    """How tool calls of the caller's own session, and their results, are told to the model."""

    FENCED = "fenced"
    """As evidence, like every other unit."""
    NATIVE = "native"
    """As the model's own calls and the tools' answers, in the vendor's form."""


class ContextQuery(Model):
    """The body of ``POST /v1/context``. Which of task_id, unit_id, session_id, topic and step are given decides the query's type."""

    task_id: Id | None = None
    unit_id: Id | None = None
    session_id: Id | None = None
    step: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="The step of task_id that is about to be taken; later steps of that task are left out."
    )
    topic: Annotated[Text, Field(max_length=200_000)] | None = Field(
        default=None, description="Anything about a topic: a question, some words, an identifier; alone, or with one of the others."
    )
    strategy: StrategyName = StrategyName.AUTO
    budget_tokens: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        default=DEFAULT_BUDGET_TOKENS, description="The most tokens, in the target model's own, that the rendered context may cost."
    )
    model: ShortText | None = Field(default=None, description="Target model id; the Lastro-Model header when left out.")
    api: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="Which of a model's APIs the payload is for, by its name in `rendered.api` or the last part of it, such as `responses`;"
        " the family's own choice when left out.",
    )
    render: bool = Field(default=True, description="false: neutral units only, no payload.")
    tool_pairs: ToolPairs = Field(
        default=ToolPairs.FENCED,
        description="native: tool calls of the caller's own session and their results as the vendor's own messages; fenced: as evidence.",
    )
    stable_prefix: bool = Field(
        default=False,
        description="true: units in the order of recording, so that what did not change keeps its bytes at the front of the payload and the"
        " vendor's prompt cache hits; the order by attention is given up.",
    )
    as_of: Timestamp | None = Field(default=None, description="Only what had been recorded by then.")
    include_history: bool = Field(default=False, description="true: superseded units too.")
    kinds: Annotated[list[Kind], Field(min_length=1, max_length=len(Kind), fail_fast=True)] | None = Field(
        default=None, description="Only these kinds."
    )
    question: Annotated[Text, Field(max_length=20_000)] | None = Field(
        default=None, description="The caller's own question, rendered after the context. Never stored."
    )
    deadline_ms: Annotated[int, Field(ge=1, le=60_000)] = DEFAULT_DEADLINE_MS
