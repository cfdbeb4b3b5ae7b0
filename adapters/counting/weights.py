"""Tokens of a text from those of another tokenizer and from what else the text shows, for models whose own tokenizer is not published.

A rendered answer is counted within the time of its query, so what a text shows is found by whole passes over its bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from adapters.counting.rules import Feature, TextRule

_FEW_TOKENS = 60
"""Below so many tokens a text has the error of one document."""
_TOKENS_PER_NEW_WORD = 6
"""Distinct words stand for so many tokens of varied text: a judgement."""

_PIECE = 8_192
"""Characters whose words are found at a time."""

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_MARK = re.compile(r"[^\w\s]")

_USUAL = (0.9, 2.2)
"""Tokens by the weights for each of the encoding's, of texts that the weights were fitted on."""
UNUSUAL_ERROR = 0.4
"""Of texts beyond that. With it the bounds held Russian, Chinese, Arabic, emoji, capitals and camel case, not runs of one character (tried on ctok 1.3)."""


class Weighed(NamedTuple):
    """A text's tokens; ``usual`` is false where they were beyond what the weights can tell, and were cut to that."""

    value: float
    usual: bool


def weigh(rule: TextRule, tokens: int, text: str) -> Weighed:
    """The text's tokens by the rule, where its ``encoding`` gives ``tokens``; at least 1.

    Other alphabets, and runs of one character, show much of what is weighed and cost far less: weights alone gave Russian 3.4 times its tokens.
    """
    beside: dict[Feature, float] = {name: weight for name, weight in rule.weights.items() if name != "tokens"}
    shown = features(text) if beside else {}
    value = rule.weights.get("tokens", 1) * tokens + sum(weight * shown[name] for name, weight in beside.items())
    least, most = (factor * tokens for factor in _USUAL)
    # A few words may be anything: they hardly count.
    usual = not beside or tokens < _FEW_TOKENS or least <= value <= most
    return Weighed(max(value if usual else min(max(value, least), most), 1), usual)


def relative_error(rule: TextRule, tokens: float, distinct_words: int) -> float:
    """p95 relative error of what the rule gives for texts of so many tokens and words.

    What says the same again and again has the error of one short document, however long it is.
    """
    varied = max(min(tokens, _TOKENS_PER_NEW_WORD * distinct_words), 1)
    share = math.log(varied / _FEW_TOKENS) / math.log(rule.many / _FEW_TOKENS)
    return rule.error_one + (rule.error_many - rule.error_one) * min(max(share, 0), 1)


def distinct_words(texts: Iterable[str], rule: TextRule) -> int:
    """How many different words the texts hold; about as many as make the rule's smallest error, where there are that many."""
    found: set[str] = set()
    for text in texts:
        for start in range(0, len(text), _PIECE):
            found.update(text[start : start + _PIECE].split())
            if len(found) * _TOKENS_PER_NEW_WORD >= rule.many:
                return len(found)
    return len(found)


def features(text: str) -> dict[Feature, int]:
    """How often the text shows each thing that rules weigh, but for tokens."""
    plain = text if text.isascii() else _BEYOND_ASCII.sub(" ", text)
    data = plain.encode()
    cased, digits = data.translate(_CASES), data.translate(_DIGITS)
    # A run begins after a blank, so counting its first characters counts runs of at least that length: many times quicker than taking them apart.
    letters = b" " + data.translate(_LETTERS)
    long_words = letters.count(b" " + b"a" * 9)
    # Marks of other writings count too, and may stand together with ours.
    marks = (data if text.isascii() else _BEYOND_ASCII.sub(_mark_or_blank, text).encode()).translate(_MARKED)
    return {
        "digits": digits.count(b"0"),
        "numbers": (b" " + digits).count(b" 0"),
        "punctuation": marks.count(b"."),
        "marks_together": (b" " + marks).count(b" .."),
        "capitals": cased.count(b"A"),
        "inner_capitals": cased.count(b"aA"),
        "beyond_ascii": len(text) - len(text.encode("ascii", "ignore")),
        "middle_words": letters.count(b" " + b"a" * 6) - long_words,
        "long_words": long_words,
        "joined": data.translate(_JOINTS).count(b"wjw"),
        "spaces": text.count(" "),
        "lines": text.count("\n"),
    }


def _table(kind: Callable[[str], str]) -> bytes:
    """For ``bytes.translate``: each ASCII character as the one that stands for its kind; the others do not occur."""
    return "".join(kind(chr(code)) for code in range(128)).encode().ljust(256)


def _mark_or_blank(found: re.Match[str]) -> str:
    return "." if _is_mark(found[0]) else " "


@lru_cache(maxsize=1_000)
def _is_mark(character: str) -> bool:
    return _MARK.fullmatch(character) is not None


_LETTERS = _table(lambda character: "a" if character.isalpha() else " ")
_DIGITS = _table(lambda character: "0" if character.isdigit() else " ")
_CASES = _table(lambda character: "A" if character.isupper() else "a" if character.islower() else " ")
_JOINTS = _table(lambda character: "w" if character.isalnum() else "j" if character in "_-/." else " ")
_MARKED = _table(lambda character: "." if _MARK.fullmatch(character) else " ")
