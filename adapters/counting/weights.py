"""Tokens of a text from those of another tokenizer and from what else the text shows, for models whose own tokenizer is not published.

A rendered answer is counted within the time of its query, so what a text shows is found by whole passes over its bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from adapters.counting.rules import Feature, TextRule

_FEW_TOKENS = 60
"""Below so many tokens a text has the error of one document."""
_TOKENS_PER_NEW_WORD = 6
"""Distinct words stand for so many tokens of varied text: a judgement."""

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_MARK = re.compile(r"[^\w\s]")
_MARKS = re.compile(r"[^\w\s]{2,}")


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


def features(text: str) -> dict[Feature, int]:
    """How often the text shows each thing that rules weigh, but for tokens."""
    plain = text if text.isascii() else _BEYOND_ASCII.sub(" ", text)
    data = plain.encode()
    cased, digits = data.translate(_CASES), data.translate(_DIGITS)
    lengths = list(map(len, data.translate(_LETTERS).split()))
    if text.isascii():
        marks = data.translate(_MARKED)
        punctuation, together = marks.count(b"."), sum(length > 1 for length in map(len, marks.split()))
    else:
        # Marks of other writings count too, and may stand together with ours.
        punctuation, together = len(_MARK.findall(text)), len(_MARKS.findall(text))
    return {
        "digits": digits.count(b"0"),
        "numbers": len(digits.split()),
        "punctuation": punctuation,
        "marks_together": together,
        "capitals": cased.count(b"A"),
        "inner_capitals": cased.count(b"aA"),
        "beyond_ascii": len(text) - len(text.encode("ascii", "ignore")),
        "middle_words": sum(6 <= length <= 8 for length in lengths),  # noqa: PLR2004 (the feature's definition)
        "long_words": sum(length > 8 for length in lengths),  # noqa: PLR2004 (as above)
        "joined": data.translate(_JOINTS).count(b"wjw"),
        "spaces": text.count(" "),
        "lines": text.count("\n"),
    }


def _table(kind: Callable[[str], str]) -> bytes:
    """For ``bytes.translate``: each ASCII character as the one that stands for its kind; the others do not occur."""
    return "".join(kind(chr(code)) for code in range(128)).encode().ljust(256)


_LETTERS = _table(lambda character: "a" if character.isalpha() else " ")
_DIGITS = _table(lambda character: "0" if character.isdigit() else " ")
_CASES = _table(lambda character: "A" if character.isupper() else "a" if character.islower() else " ")
_JOINTS = _table(lambda character: "w" if character.isalnum() else "j" if character in "_-/." else " ")
_MARKED = _table(lambda character: "." if _MARK.fullmatch(character) else " ")
