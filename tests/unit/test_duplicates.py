"""What says the same again, and what only looks like it."""

from __future__ import annotations

import pytest

from app.router.duplicates import said

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
    assert said(again) == said(SAID)


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
    assert part in SAID
    assert said(SAID.replace(part, other)) != said(SAID)


def test_order_counts() -> None:
    assert said("Alpha beats beta.") != said("Beta beats alpha.")
