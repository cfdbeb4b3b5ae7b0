"""What counts tokens: the protocol, and what a count of one text says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from graph.model.answer import CountMethod


@dataclass(frozen=True, slots=True)
class Tally:
    """Tokens of a text, of them those that begin within given spans, and bounds of the first number."""

    total: int
    within: int
    low: int
    high: int


class Counter(Protocol):
    """Counts the tokens of one encoding."""

    @property
    def name(self) -> str: ...
    @property
    def method(self) -> CountMethod: ...
    def count(self, text: str) -> int: ...
    def tally(self, text: str, spans: Sequence[tuple[int, int]]) -> Tally:
        """``spans`` are byte offsets (UTF-8) of the text, from and to, ascending."""
        ...
