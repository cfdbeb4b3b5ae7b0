"""Vectors as the graph takes them, and what is known of the embeddings that it holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

NEVER_ZERO = 1e-12
"""Length from which on a vector has a direction."""


class EmbeddingPhase(StrEnum):
    """How far the embeddings of the graph are those of its model."""

    COMPLETE = "complete"
    """Every unit has its embedding, or waits for it in its turn."""
    GAPS = "gaps"
    """Units were written while no embedder was set: they have none, and do not wait for one."""
    MARKING = "marking"
    """The model was changed; units are being told to wait for an embedding of the new one."""
    EMBEDDING = "embedding"
    """All have been told, and not all have theirs."""


@dataclass(frozen=True, slots=True)
class EmbeddingState:
    """Which model the graph's embeddings are of."""

    model: str
    dimensions: int
    phase: EmbeddingPhase
    marked_to: str = ""
    """In ``MARKING``: the order key of the last unit that was told."""


@dataclass(frozen=True, slots=True)
class EmbeddingLag:
    """What waits for its embedding."""

    due: int
    """Units; counted up to ``MOST_COUNTED`` of ``graph.embedding_store``."""
    oldest_s: float
    """How long the first has been waiting, seconds; 0 when nothing waits."""


def usable(vector: Sequence[float], dimensions: int) -> list[float] | None:
    """A vector of length 1 in the same direction; None for one that must not be stored: of other dimensions, not finite, or zero.

    Neo4j stores such a vector without a word and never finds it; the embedded engine refuses the whole transaction.
    """
    if len(vector) != dimensions or not all(map(math.isfinite, vector)):
        return None
    length = math.hypot(*vector)
    if not math.isfinite(length) or length < NEVER_ZERO:
        return None
    return [value / length for value in vector]
