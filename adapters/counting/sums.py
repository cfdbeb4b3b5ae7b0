"""Adding up: tokens by what they are spent on, each with bounds, the whole as good as its worst part."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

from adapters.counter import Counter
from adapters.counting.rules import TextRule
from adapters.counting.weights import UNUSUAL_ERROR, relative_error, weigh
from adapters.fence import well_formed
from adapters.tokenizers import Tokenizers
from graph.model.answer import CountMethod, TokenCount, TokenParts

Part = Literal["content", "framing", "tools"]

CTOK_MOST_CHARACTERS = 400_000
"""Longer texts are counted by the weights: ctok took 4 ms for 1,000 characters at most (measured), so this is about a second."""

_MOST_WORDS = 10_000
_WORD = re.compile(r"\w{1,40}")


class Counted(NamedTuple):
    """Tokens, and between which numbers they lie."""

    value: float
    low: float
    high: float


def _no_notes() -> dict[str, None]:
    return {}


@dataclass(slots=True)
class Sum:
    """Tokens of one request while it is looked through."""

    rule: TextRule
    tokenizers: Tokenizers
    values: dict[Part, float] = field(default_factory=lambda: {"content": 0.0, "framing": 0.0, "tools": 0.0})
    low: float = 0
    high: float = 0
    method: CountMethod = CountMethod.EXACT
    notes: dict[str, None] = field(default_factory=_no_notes)
    """Codes of what had to be guessed, in order, each once."""
    _text: Counted = field(default_factory=lambda: Counted(0, 0, 0))
    """Texts whose tokens are not the model's own: their error is known for the sum, not for each."""
    _counter: Counter | None = None
    _words: set[str] = field(default_factory=set[str])
    _usual: bool = True
    _weighed: bool = False
    """Whether some text was counted by weights: one that is too long for ctok is, also where that is installed."""

    @property
    def counter(self) -> Counter:
        if self._counter is None:
            self._counter = self.tokenizers.for_name(self.rule.encoding)
            self.worst(self._counter.method)
        return self._counter

    @property
    def tokenizer(self) -> str:
        """What counted, for people."""
        if self._ctok() is not None:
            return f"ctok {self.rule.ctok}"
        return (
            f"{self.counter.name}, weighted" if self.rule.weights and self.counter.method is not CountMethod.ESTIMATE else self.counter.name
        )

    def text(self, part: Part, text: str) -> int:
        """Add a text and return its tokens, rounded."""
        if not text:
            return 0
        counted = self.measure(text)
        self.values[part] += counted.value
        if self.rule.weights:
            if len(self._words) < _MOST_WORDS:
                self._words.update(match[0] for match in islice(_WORD.finditer(text), _MOST_WORDS))
            self._text = Counted(*(a + b for a, b in zip(self._text, counted, strict=True)))
        else:
            self.low += counted.low
            self.high += counted.high
        return round(counted.value)

    def measure(self, text: str) -> Counted:
        """The tokens of a text, not added to anything; bounds are without the error of weights."""
        text = well_formed(text)
        if not self.rule.weights:
            tally = self.counter.tally(text, ())
            return Counted(tally.total, tally.low, tally.high)
        self.worst(CountMethod.CALIBRATED)
        ctok = self._ctok()
        if ctok is not None and len(text) <= CTOK_MOST_CHARACTERS:
            exact = max(ctok(text, self.rule.ctok or "") - self.rule.frame, 0)
            return Counted(exact, exact, exact)
        tally = self.counter.tally(text, ())
        self._weighed = True
        value, usual = weigh(self.rule, tally.total, text)
        self._usual = self._usual and usual
        weight = self.rule.weights.get("tokens", 1)
        return Counted(value, value - weight * (tally.total - tally.low), value + weight * (tally.high - tally.total))

    def fixed(self, part: Part, tokens: float, slack: float = 0) -> None:
        """Add what the vendor puts there; ``slack`` is by how many tokens that may be off, which makes it calibrated."""
        self.values[part] += tokens
        self.low += tokens - slack
        self.high += tokens + slack
        if slack:
            self.worst(CountMethod.CALIBRATED)

    def guess(self, part: Part, value: float, low: float, high: float, note: str) -> None:
        """Add what can only be estimated; ``note`` is the code that says so."""
        self.values[part] += value
        self.low += low
        self.high += high
        self.worst(CountMethod.ESTIMATE)
        self.notes.setdefault(note)

    def worst(self, method: CountMethod) -> None:
        self.method = max(self.method, method, key=lambda each: each.rank)

    def total(self) -> TokenCount:
        """The whole, rounded so that the parts add up to it and the bounds hold it."""
        if self.counter.method is CountMethod.ESTIMATE:
            self.notes.setdefault("no_tokenizer")
        error = self._error()
        parts = {part: max(round(value), 0) for part, value in self.values.items()}
        value = sum(parts.values())
        low = max(math.floor(self.low + self._text.low * (1 - error)), 0)
        high = math.ceil(self.high + self._text.high * (1 + error))
        return TokenCount(
            value=value,
            method=self.method,
            low=min(low, value),
            high=max(high, value),
            tokenizer=self.tokenizer,
            parts=TokenParts(content=parts["content"], framing=parts["framing"], tools=parts["tools"]),
        )

    def _error(self) -> float:
        if not self._weighed:
            return self.rule.ctok_error
        error = relative_error(self.rule, self._text.value, len(self._words))
        return error if self._usual else max(error, UNUSUAL_ERROR)

    def _ctok(self) -> Callable[[str, str], int] | None:
        return self.tokenizers.claude() if self.rule.ctok is not None else None
