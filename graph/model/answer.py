"""What an agent gets: units in priority order, how they relate, the payload for its model, what it costs, and the receipt."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from graph.model.base import Model
from graph.model.query import QueryType, StrategyName
from graph.model.units import ContextUnit, EdgeType


class PathStep(Model):
    """One edge walked: ``direction`` is ``out`` along the edge (to what came before) or ``in`` against it."""

    from_id: str
    edge_type: EdgeType
    direction: str
    to_id: str


class SelectedUnit(ContextUnit):
    """A unit of an answer with why it is there."""

    relevance_score: float = Field(description="0 to 1 within this answer.")
    path: list[PathStep] = Field(default_factory=list[PathStep], description="How it was reached; empty for a starting point.")
    reason: str = Field(
        description="start, reached, rule, required, pair, superseder, recent, text, meaning, neighbour, name, or the tier: hot, warm or cold."
    )


class AnswerRelation(Model):
    """An edge between two units of the answer."""

    source_id: str
    target_id: str
    edge_type: EdgeType


class CountMethod(StrEnum):
    """How a number of tokens was found, best first."""

    EXACT = "exact"
    """By the model's own public tokenizer and framing rules."""
    CALIBRATED = "calibrated"
    """From another tokenizer by a measured factor; bounds hold for about 95 % of texts."""
    ESTIMATE = "estimate"
    """From the number of bytes; no tokenizer was available."""

    @property
    def rank(self) -> int:
        """0 for the best."""
        return list(CountMethod).index(self)


class TokenParts(Model):
    """Tokens by what they are spent on."""

    content: int
    framing: int
    tools: int = 0


class TokenCount(Model):
    """A number of tokens in a model's own, with how it was found and the bounds it lies within."""

    value: int
    method: CountMethod
    low: int
    high: int
    tokenizer: str
    parts: TokenParts


class Consumption(Model):
    """What the answer costs the caller (A5)."""

    tokens: TokenCount
    units: int
    compression: float = Field(description="Neutral tokens of the chosen contents divided by the rendered payload's tokens.")


class LeftOutReason(StrEnum):
    """Why a candidate is not in the answer."""

    BUDGET = "budget"
    SUPERSEDED = "superseded"
    RETRACTED = "retracted"
    EXPIRED = "expired"
    PERMISSION = "permission"
    TRUST = "trust"
    QUARANTINED = "quarantined"
    DUPLICATE = "duplicate"
    INCOMPLETE = "incomplete"
    """It cannot stand without another unit that may not be part of this answer."""


class LeftOut(Model):
    """One candidate that was seen and not chosen."""

    id: str
    reason: LeftOutReason
    tokens: int | None = None


class Attempt(Model):
    """One strategy that was tried."""

    strategy: StrategyName
    outcome: str = Field(description="answered, timed_out, or not_begun: beside others it would not have ended in time.")
    ms: float
    reason: str = ""


class SearchReceipt(Model):
    """What a search for a topic did. Counts are of units that the caller may see."""

    words_dropped: list[str] = Field(
        default_factory=list[str],
        description="Words of the topic that were not searched for, since it has too many; its most telling are. At most 100.",
    )
    words_dropped_count: int = 0
    found_by_text: int = Field(description="Units that hold some of the words.")
    text_complete: bool = Field(description="false when more units hold some of the words than were looked at.")
    vectors: str = Field(
        description="off, exact (all were compared), index, or index_over_fetch (asked for more until enough could be seen)."
    )
    found_by_vectors: int
    vectors_complete: bool = Field(description="false when a bound or the time ended the search by meaning.")
    neighbours: int = Field(description="Units that came in since they stand beside found ones.")
    names_crossed: int = Field(description="Names that found units share with others.")
    embedding_ms: float = Field(description="What the vector of the topic took.")


class Receipt(Model):
    """How the answer came about (R5)."""

    trace_id: str
    query_type: QueryType
    strategy: StrategyName = Field(description="The one that answered.")
    why: str = Field(description="Why this strategy was chosen.")
    attempts: list[Attempt]
    fallback: bool = Field(description="true when the strategy first chosen did not answer in time.")
    partial: bool = Field(default=False, description="true when a part of the strategy was late or failed; the notes say which.")
    candidates: int
    search: SearchReceipt | None = None
    hubs_sampled: bool = Field(description="true when a neighbourhood was larger than the bound and only its newest part was read.")
    left_out: list[LeftOut] = Field(description="At most 50, best first.")
    left_out_counts: dict[str, int]
    budget_tokens: int
    budget_used: int
    deadline_ms: int
    cache: str = "off"
    timings_ms: dict[str, float]
    notes: list[str] = Field(default_factory=list[str])


class Rendered(Model):
    """The payload for the vendor's API named in ``api``, to be sent as it is or merged into the caller's own request."""

    api: str
    model: str
    payload: dict[str, Any]
    order: list[str] = Field(description="Unit ids by position in the payload.")
    tool_names: dict[str, str] = Field(
        default_factory=dict[str, str],
        description="Tool names that the vendor does not take: as the payload's calls say them, and as they were recorded.",
    )
    notes: list[str] = Field(default_factory=list[str], description="What was adapted or could not be said.")


class ContextAnswer(Model):
    """The answer to a ContextQuery."""

    units: list[SelectedUnit]
    relations: list[AnswerRelation]
    rendered: Rendered | None
    consumption: Consumption
    receipt: Receipt


class Lineage(Model):
    """Units that came before or after one, and the edges among them."""

    units: list[ContextUnit]
    relations: list[AnswerRelation]
    truncated: bool = Field(default=False, description="true when there are more than the bound allows.")
