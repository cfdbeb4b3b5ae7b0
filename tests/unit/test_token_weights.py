"""What a text shows, for tokenizers that are not published: found by passes over bytes, the same as by the definition of each feature (A5)."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.counting.rules import TextRule, text_rule
from adapters.counting.weights import features, relative_error, weigh

DEFINITIONS = {
    "numbers": r"[0-9]+",
    "digits": r"[0-9]",
    "punctuation": r"[^\w\s]",
    "marks_together": r"[^\w\s]{2,}",
    "capitals": r"[A-Z]",
    "inner_capitals": r"[a-z][A-Z]",
    "beyond_ascii": r"[^\x00-\x7f]",
    "middle_words": r"(?<![A-Za-z])[A-Za-z]{6,8}(?![A-Za-z])",
    "long_words": r"[A-Za-z]{9,}",
    "joined": r"[A-Za-z0-9][_\-/.][A-Za-z0-9]",
    "spaces": r"[ ]",
    "lines": r"\n",
}
PIECES = (
    "checkout",
    "orders-db",
    "p95",
    "2.4 s",
    "aB",
    "configuração",
    "…",
    "—",
    "--",
    "a.b.c",
    "\n",
    " ",
    "日本",
    "x_1",
    "\x1f",
    "\x00",
    "é!",
    "²",
)


@example("a-b-c 1-2-3 camelCaseWord")
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=30).map("".join))
def test_each_feature_is_what_its_definition_says(text: str) -> None:
    assert features(text) == {name: len(re.findall(pattern, text)) for name, pattern in DEFINITIONS.items()}


def test_what_is_not_weighed_does_not_count() -> None:
    rule = TextRule(encoding="o200k_base", weights={"tokens": 1.5, "lines": 2})
    assert weigh(rule, 10, "one\ntwo") == (17, True)
    assert weigh(rule, 0, "") == (1, True)


def test_what_the_weights_cannot_tell_is_cut_and_said() -> None:
    rule = text_rule("claude-opus-4-8")
    assert weigh(rule, 1_000, " " * 16_000) == (2_200, False)
    assert weigh(rule, 1_000, "\n" * 16_000) == (900, False)
    assert weigh(rule, 481, "Вчера мы проверили пул соединений базы данных. " * 40).usual is False
    assert weigh(rule, 130, "The pool of connections was empty, so every request waited. " * 10).usual is True


@pytest.mark.parametrize(("tokens", "words", "expected"), [(10, 10, 0.2), (4_000, 4_000, 0.1), (40_000, 3, 0.2), (400_000, 90_000, 0.1)])
def test_a_text_that_repeats_itself_has_the_error_of_a_short_one(tokens: int, words: int, expected: float) -> None:
    rule = TextRule(encoding="o200k_base", error_one=0.2, error_many=0.1, many=4_000)
    assert relative_error(rule, tokens, words) == pytest.approx(expected)
