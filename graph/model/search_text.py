"""Words as search knows them: one form for what a unit says and what a question asks, the same on every engine.

Text is lower-cased and its accents are folded. A word is kept as the stems that English and Portuguese make of it, since neither a unit nor a
question says which language it is in. An identifier (`superset.alert.delivery`, `not_in_channel`, `s3`) is kept whole and in its parts. What
is written without spaces (Chinese, Japanese, Korean) is kept as pairs of characters. A full-text index over these terms needs an analyzer that
splits at spaces and nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, cast

MOST_TERMS = 20_000
"""Terms kept of one text. What is longer than that is found by its beginning."""
LONGEST_TERM = 64
"""Characters of one term; the rest of a longer one is cut off."""
LONGEST_RUN = 4 * LONGEST_TERM
"""Characters of a run without blanks that are looked at, so that what is kept of words stays small."""
MOST_ASKED = 64
"""Words of a question that are searched for (S7). An index search costs by the term, and engines refuse more than 1,024."""
SHORT_IDENTIFIER = 4
"""Length up to which a word of letters and digits is an identifier, such as ``s3``."""

WORD = re.compile(r"[^\W_]+(?:[._:/@#\\'’+-]+[^\W_]+)*\+{0,2}", re.UNICODE)  # noqa: RUF001 (an apostrophe as people type it)
JOINED_BY = re.compile(r"[._:/@#\\'’+-]+")  # noqa: RUF001
APOSTROPHE = re.compile(r"['’](?:s|t|re|ve|ll|d|m)?$")  # noqa: RUF001
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]+")
"""Kana, Han and Hangul."""

# Suffixes whose accent was folded away or never typed, given back so that the Portuguese stemmer knows them; plurals become singulars first.
PORTUGUESE_SUFFIXES: tuple[tuple[str, str], ...] = (
    ("coes", "ção"),
    ("soes", "são"),
    ("oes", "ão"),
    ("aes", "ão"),
    ("aos", "ão"),
    ("cao", "ção"),
    ("sao", "são"),
    ("ao", "ão"),
    ("encias", "ência"),
    ("encia", "ência"),
    ("ancias", "ância"),
    ("ancia", "ância"),
    ("aveis", "ável"),
    ("iveis", "ível"),
    ("avel", "ável"),
    ("ivel", "ível"),
    ("ais", "al"),
    ("eis", "el"),
)
# The words that carry least in a question, in both languages. Short on purpose: longer lists hold `state`, `system` and `work`.
STOP_WORDS = frozenset(
    word
    for line in (
        "a about am an and any are as at be been but by can could did do does for from had has have he her him his how i if in into is",
        "it its me my no not of on or our she should so than that the their them then there these they this to us was we were what",
        "when where which who whom why will with would you your ao aos as com como da das de do dos e ela elas ele eles em entre era",
        "essa esse esta este eu foi foram ha isso isto ja lhe mais mas me mesmo meu minha muito na nao nas nem no nos nosso nossa o os",
        "ou para pela pelas pelo pelos por qual quais quando que quem se sem ser seu seus sua suas tambem te tem um uma umas uns voce",
        "voces",
    )
    for word in line.split()
)


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """A question as search takes it."""

    words: tuple[tuple[str, ...], ...]
    """Each kept word as its alternative terms: the whole identifier or the stems of one word."""
    dropped: tuple[str, ...] = ()
    """Words of the caller's that are not searched for, since the question has too many; as they were typed."""

    @property
    def terms(self) -> tuple[str, ...]:
        """All terms, once each, in their order."""
        return tuple(dict.fromkeys(term for word in self.words for term in word))


def terms_of(text: str) -> list[str]:
    """The terms of a text in their order, with repetitions, without stop words."""
    found: list[str] = []
    for run in WORD.findall(text):
        found += _terms(run[:LONGEST_RUN])
        if len(found) >= MOST_TERMS:
            return found[:MOST_TERMS]
    return found


def search_text(*parts: str | None) -> str:
    """What the full-text index takes of a unit: the terms of its texts, separated by spaces."""
    return " ".join([term for part in parts if part for term in terms_of(part)])


def query_terms(text: str, most: int = MOST_ASKED) -> QueryTerms:
    """The words of a question, at most ``most``: identifiers are kept first, then numbers and names, then what is longer."""
    distinct: dict[tuple[str, ...], _Word] = {}
    for word in _words(text):
        distinct.setdefault(word.terms, word)
    if len(distinct) <= most:
        return QueryTerms(tuple(distinct))
    places = {terms: place for place, terms in enumerate(distinct)}
    ranked = sorted(distinct, key=lambda terms: (-distinct[terms].weight, places[terms]))
    kept = set(ranked[:most])
    return QueryTerms(
        tuple(terms for terms in distinct if terms in kept),
        tuple(distinct[terms].typed[:LONGEST_TERM] for terms in distinct if terms not in kept),
    )


def index_clause(field: str, terms: Sequence[str]) -> str:
    """``+field:(a b c)`` for Lucene's parser, with everything that it would take for syntax escaped. ``terms`` must not be empty."""
    return f"+{field}:({' '.join(escaped(term) for term in terms)})"


def escaped(term: str) -> str:
    """A term that Lucene's query parser takes as it is. Terms are lower case, so none is one of its operators."""
    return SYNTAX.sub(r"\\\g<0>", term)


SYNTAX = re.compile(r"""[-+&|!(){}\[\]^"~*?:\\/<>=]""")


@dataclass(frozen=True, slots=True)
class _Word:
    typed: str
    terms: tuple[str, ...]
    weight: float
    """How much it is likely to select, for questions that are too long."""


def folded(text: str) -> str:
    """Lower case, compatibility forms made plain, accents away."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in plain if not unicodedata.combining(char))


def _words(text: str) -> Iterator[_Word]:
    """The words of a text that are searched for: no stop words. An identifier gives itself, then its parts."""
    for match in WORD.finditer(text):
        yield from _word(match[0][:LONGEST_RUN])


@lru_cache(maxsize=50_000)
def _terms(typed: str) -> tuple[str, ...]:
    """The terms of one run of characters: one look-up for each word that a unit holds, which most of the time of a write in this process was."""
    return tuple(term for word in _word(typed) for term in word.terms)


@lru_cache(maxsize=50_000)
def _word(typed: str) -> tuple[_Word, ...]:
    """What one run of characters gives. Kept, since a few thousand words make most of any text."""
    if UNSPACED.search(typed):
        return tuple(_unspaced(typed))
    plain = APOSTROPHE.sub("", typed)
    parts = [part for part in JOINED_BY.split(plain) if part]
    if len(parts) > 1:
        whole = _Word(typed, (folded(plain)[:LONGEST_TERM],), 1000)
        return (whole, *(word for part in parts if len(part) > 1 for word in _plain(part)))
    camel = CAMEL.split(plain) if parts else []
    if len(camel) > 1:
        whole = _Word(typed, (folded(plain)[:LONGEST_TERM],), 1000)
        return (whole, *(word for part in camel for word in _plain(part)))
    return tuple(_plain(plain))


def _plain(typed: str) -> Iterator[_Word]:
    """A word without joints."""
    low = folded(typed)[:LONGEST_TERM]
    if not low or low in STOP_WORDS:
        return
    if any(char.isdigit() for char in low):
        yield _Word(typed, (low,), 500)
        return
    english, portuguese = _stemmers()
    stems = dict.fromkeys((english(low), folded(portuguese(_with_accents(low)))))
    yield _Word(typed, tuple(stem for stem in stems if stem) or (low,), len(low) + (20 if typed[0].isupper() else 0))


def _unspaced(typed: str) -> Iterator[_Word]:
    at = 0
    for run in UNSPACED.finditer(typed):
        if run.start() > at:
            yield from _plain(typed[at : run.start()])
        text = run[0]
        for start in range(max(len(text) - 1, 1)):
            pair = text[start : start + 2]
            yield _Word(pair, (folded(pair),), 10)
        at = run.end()
    if at < len(typed):
        yield from _plain(typed[at:])


def _with_accents(low: str) -> str:
    for plain, accented in PORTUGUESE_SUFFIXES:
        if low.endswith(plain) and len(low) > len(plain) + 1:
            return low[: -len(plain)] + accented
    return low


@cache
def _stemmers() -> tuple[Callable[[str], str], Callable[[str], str]]:
    """English and Portuguese. The library's own types are not known to the type checker."""
    import snowballstemmer  # pyright: ignore[reportMissingTypeStubs] # noqa: PLC0415 (thirty languages, which no command needs to start)

    make = cast("Callable[[str], Any]", snowballstemmer.stemmer)  # pyright: ignore[reportUnknownMemberType]
    return make("english").stemWord, make("portuguese").stemWord
