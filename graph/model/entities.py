"""What a text speaks of, found without a model: strong identifiers, quoted titles and proper names (S8).

Being about a name and mentioning it are different: a text is about what its heading or first line names. Two units that meet in a rare name
belong together though nobody linked them; a name that many units share says little, and is not crossed (see ``search/walk_entities``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from graph.model.search_text import STOP_WORDS, folded

MOST = 48
"""Entities kept of one text; those that it names first."""
LOOKED_AT = 20_000
"""Characters of a text in which entities are looked for."""
HEADING_WORDS = 12
HEADING_LENGTH = 100
LONGEST = 100
"""Characters of a name."""
TITLE_WORDS = 10
"""Words of a quoted title at the most; what is longer is speech."""

LETTER = "A-Z\u00c0-\u00d6\u00d8-\u00de"
IDENTIFIER = re.compile(
    r"(?<![\w.@/#-])(?:[A-Za-z0-9_/#~.]+(?:[._:/@#]+[A-Za-z0-9_]+)+|[A-Za-z0-9]+(?:-[A-Za-z0-9]+)+|[A-Za-z]+[0-9][A-Za-z0-9]*|[A-Z]{2,})(?!\w)"
)
TELLING = re.compile(r"[A-Z0-9_./:@#].*[A-Za-z]|[A-Za-z].*[A-Z0-9_./:@#]")
"""What makes a joined word an identifier rather than a compound."""
JOINS = re.compile(r"\s+(?:and|e|y|&)\s+")
CODE = re.compile(r"`([^`\n]{2,80})`")
QUOTES = '"“„«'
QUOTED = re.compile(r"[\"“„«]([^\"“”„«»\n]{2,80})[\"”“»]")
NAME = re.compile(
    rf"\b[{LETTER}][\w’'-]*(?:(?:\s+(?:of|the|in|at|on|and|for|&|de|da|do|dos|das|del|della|la|le|du|van|von|der|den|e|y)){{1,2}}"  # noqa: RUF001
    rf"\s+[{LETTER}][\w’'-]*|\s+[{LETTER}]\.(?=\s)|\s+[{LETTER}][\w’'-]*|\s+\d{{1,4}}\b)*"  # noqa: RUF001
)
SENTENCE_START = re.compile(r"(?:^|[.!?:;•\n\r\"“(\]>|-])\s*$")
POSSESSIVE = re.compile(r"['’]s?$")  # noqa: RUF001
QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
HEADING_MARKS = re.compile(r"^[#>*_\s-]+|[*_#\s]+$")
SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Entities:
    """Keys of what a text speaks of: lower case, without accents, one space between words."""

    about: tuple[str, ...] = ()
    """What the heading or first line names; a qualifier in brackets is left out of the second key."""
    mentions: tuple[str, ...] = ()
    """The others, in the order of the text."""


def entities_of(text: str) -> Entities:
    """The entities of a unit's content."""
    text = text[:LOOKED_AT]
    heading, body = _heading(text)
    about = dict.fromkeys(key for key in (_key(heading), _key(QUALIFIER.sub("", heading))) if key) if heading else {}
    mentions = [key for key in _mentions(body) if key not in about]
    return Entities(tuple(about), tuple(mentions[:MOST]))


def names_in(question: str) -> tuple[str, ...]:
    """The entities that a question names."""
    return tuple(_mentions(question)[:MOST])


def _heading(text: str) -> tuple[str, str]:
    """The heading of a text, or nothing, and what follows it."""
    first, newline, rest = text.partition("\n")
    line = HEADING_MARKS.sub("", first)
    if not newline or not line or len(line) > HEADING_LENGTH or len(line.split()) > HEADING_WORDS or line[-1] in ".:;,!?":
        return "", text
    return line, rest


def _mentions(text: str) -> list[str]:
    found: dict[str, None] = {}
    for pattern, marks in ((CODE, "`"), (QUOTED, QUOTES)):
        # Most texts quote nothing.
        for match in pattern.finditer(text) if any(mark in text for mark in marks) else ():
            said = match[1].strip()
            if len(said.split()) <= TITLE_WORDS and (pattern is CODE or said[:1].isupper()):
                found.setdefault(_key(said))
    for match in IDENTIFIER.finditer(text):
        if TELLING.search(match[0]):
            found.setdefault(_key(match[0].strip("./#:-")))
    names = [(match[0], _starts_sentence(text, match)) for match in NAME.finditer(text)]
    inside = {_key(name) for name, starts in names if not starts}
    for name, starts in names:
        key = _key(_without_stop_word(name) if starts else name)
        # A capital at the start of a sentence is no sign of a name, unless there is more of it, or it is one elsewhere.
        if not starts or " " in key or key in inside:
            found.setdefault(key)
            # Two names that are joined, or one that has an "and" inside: both are kept, and what nobody else mentions costs nothing.
            parts = JOINS.split(key)
            if len(parts) > 1:
                found.update(dict.fromkeys(parts))
    return [key for key in found if len(key) > 1 and key not in STOP_WORDS]


def _starts_sentence(text: str, match: re.Match[str]) -> bool:
    return SENTENCE_START.search(text, max(0, match.start() - 4), match.start()) is not None


def _without_stop_word(name: str) -> str:
    first, space, rest = name.partition(" ")
    return rest if space and folded(first) in STOP_WORDS else name


def _key(name: str) -> str:
    key = SPACES.sub(" ", folded(POSSESSIVE.sub("", name.strip()))).strip(" .,;:!?'\"")
    for article in ("the ", "a ", "an ", "o ", "os ", "as "):
        if key.startswith(article) and len(key) > len(article):
            key = key.removeprefix(article)
            break
    return key[:LONGEST]
