"""What says the same again, and what only looks like it."""

from __future__ import annotations

import pytest

from app.router.duplicates import Texts

SAID = "The export to host alpha failed 3 times because the disk was full, at -5 °C."


@pytest.mark.parametrize(
    "again",
    [
        SAID,
        SAID.upper(),
        "**The export to host alpha failed 3 times, because the disk was full, at -5 °C!**",
        "An export to host alpha failed 3 times because a disk was full at -5 °C",
    ],
)
def test_the_same_in_other_clothes(again: str) -> None:
    texts = Texts()
    assert not texts.hold(again)
    texts.add(SAID)
    assert texts.hold(again)


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("alpha", "beta"),
        ("3 times", "4 times"),
        ("failed", "did not fail"),
        ("failed", "never failed"),
        ("-5", "5"),
        ("-5 °C", "-5 %"),
        ("to host", "from host"),
        ("disk was full", "disk was nearly full"),
    ],
)
def test_one_other_word_is_another_fact(part: str, other: str) -> None:
    texts = Texts()
    texts.add(SAID)
    assert part in SAID
    assert not texts.hold(SAID.replace(part, other))


def test_order_counts() -> None:
    texts = Texts()
    texts.add("Alpha beats beta.")
    assert not texts.hold("Beta beats alpha.")
