"""Texts that know which of their bytes are unit contents, so that what a context costs can be told apart from its frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """A text and where, in bytes of it, unit contents stand."""

    text: str
    spans: tuple[tuple[int, int], ...] = ()


def joined(passages: Sequence[Passage], between: str) -> Passage:
    """One passage of several, with what separates them."""
    if len(passages) == 1:
        return passages[0]
    spans: list[tuple[int, int]] = []
    at = 0
    for passage in passages:
        spans += [(start + at, end + at) for start, end in passage.spans]
        at += size_of(passage.text) + len(between)
    return Passage(between.join(passage.text for passage in passages), tuple(spans))


def whole(text: str) -> Passage:
    """A passage that is nothing but content."""
    return Passage(text, ((0, size_of(text)),) if text else ())


def size_of(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
