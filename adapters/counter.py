"""What counts tokens: the protocol, and what a count of one text says."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from graph.model.answer import CountMethod


@dataclass(frozen=True, slots=True)
class Tally:
    """Tokens of a text, of them those that begin within given spans, and bounds of the first number."""

    total: int
    within: int
    low: int
    high: int


def exact_tally(tokens: Sequence[int], lengths: array[int], spans: Sequence[tuple[int, int]]) -> Tally:
    """Of a text's token ids; ``lengths`` has the bytes of each token by its id."""
    total = len(tokens)
    within = 0
    if spans:
        starts = list(accumulate(map(lengths.__getitem__, tokens), initial=0))
        within = sum(bisect_left(starts, end, hi=total) - bisect_left(starts, start, hi=total) for start, end in spans)
    return Tally(total, within, total, total)


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
