"""How much each candidate of a topic query helps: one score from what its words, its meaning, its neighbours and its speaker say.

Pure: the same evidence gives the same scores on every engine. The index of an engine only proposes units; what counts is counted here, over
the units that the caller may see, so that no text of another tenant moves a score. Each part works without the others: with no vectors, no
sessions, no actors. `docs/benchmarks.md` has the experiments that the numbers come from.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf, log
from typing import NamedTuple

from graph.model.search_text import QueryTerms, query_terms, terms_of

Word = tuple[str, ...]
"""One word of a question as its alternative terms."""


class Evidence(NamedTuple):
    """What is known of one candidate."""

    id: str
    terms: Sequence[str]
    """Its text's terms in their order, with repetitions (:func:`graph.model.search_text.terms_of`)."""
    session_id: str | None = None
    place: int | None = None
    """How many units of its session come before it, where that is known; two or more may be given as 2."""
    speaker: str | None = None
    """Who says it: the actor, or else the agent."""
    similarity: float | None = None
    """Cosine of its vector with the question's, -1 to 1; None where there is no vector."""
    asks: bool = False
    """Its text ends with a question mark."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A way from one unit to another by a name that the first mentions and the second is about, or also only mentions."""

    from_id: str
    to_id: str
    mentions: int
    """Units that mention the name, at least 1: what many mention says little."""
    about: bool = True
    """The target's first line or heading is the name."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each part counts. The defaults were chosen on some conversations of LoCoMo and checked on others, on FaQuAD and on HotpotQA."""

    saturation: float = 1.0
    """BM25's k1: how soon repeating a word stops to help. 0.6 to 2.2 made no difference beyond noise."""
    length: float = 0.9
    """BM25's b: how much a long text's words count less. 0.9 is best on paragraphs (FaQuAD), any value will do for turns of a conversation."""
    fewest_units: int = 1000
    """Units that rarity is reckoned over at the least, so that few candidates do not make every word look common."""
    kindred: float = 0.4
    """What a word counts that only begins like one that is asked for, beside that word itself (`auxilia`, `auxílio`)."""
    kindred_length: int = 5
    """Characters that the two must share."""
    phrase: float = 0.8
    """What words that follow each other in the question add where they do in the text too; all of them would add this share of the best match."""
    window: float = 0.4
    """What standing close together adds, likewise."""
    window_terms: int = 15
    """How close that is."""
    sharpness: float = 2.0
    """Power that the share of the best match is raised to: a much better match of words is worth more than several poor ones around it."""
    meaning: float = 0.4
    """Share of the similarity of vectors beside that of words."""
    neighbours: tuple[float, ...] = (0.4, 0.3)
    """What a unit takes from those 1, 2, … places away in its session."""
    session: float = 0.23
    """What the best session adds: its units' words taken as one text."""
    speaker: float = 0.3
    """What being said by whom the question names adds."""
    question: float = 0.15
    """What a unit that only asks loses: answers help more than questions."""
    dated: float = 0.1
    """What a unit of a session gains that says when something was (`yesterday`, `last week`): it tells an event. Not so in a document."""
    opening: float = 0.07
    """What the first two units of a session gain: they bring the news, or set the task."""
    seeds: int = 10
    """Best units whose names are followed."""
    about: float = 0.6
    """What the unit a name is about takes from the best unit that mentions it."""
    shared: float = 0.2
    """What a unit takes that mentions the same rare name."""
    named: float = 0.3
    """What a unit that is about a name in the question gains, as a share of the best score."""

    @classmethod
    def with_changes(cls, changes: Mapping[str, float]) -> Weights:
        """The defaults but for some single numbers, by name. Raises ``ValueError`` for a name that is none of them, or a number below 0."""
        single = {field.name: type(field.default) for field in fields(cls) if isinstance(field.default, int | float)}
        if unknown := changes.keys() - single.keys():
            raise ValueError(f"no weights of this name: {sorted(unknown)}")
        if any(not 0 <= value < inf for value in changes.values()):
            raise ValueError("weights are not below 0")
        return replace(cls(), **{name: single[name](value) for name, value in changes.items()})


DEFAULT = Weights()

WHEN = frozenset(
    terms_of(
        "yesterday today tomorrow tonight last next ago week weekend month year monday tuesday wednesday thursday friday saturday sunday "
        "ontem anteontem hoje amanhã semana mês ano passado passada próximo próxima atrás feira sábado domingo"
    )
)
"""Terms of words that place an event in time. No names of months: texts that carry their own date would all have one."""


class Reading(NamedTuple):
    """What a text holds of a question's words."""

    hits: list[tuple[int, int]]
    """(place in the text, place of the word in the question)."""
    counts: dict[int, float]
    """How often each word of the question occurs."""


Readings = dict[tuple[Word, ...], dict[str, Reading]]
"""Readings by the question's words and the unit's id."""


def score(
    question: QueryTerms, found: Sequence[Evidence], neighbours: Mapping[str, Mapping[str, int]], weights: Weights = DEFAULT
) -> dict[str, float]:
    """The score of every candidate, higher is better; comparable only within one call. The arguments are those of :class:`Scoring`."""
    return Scoring(question, found, neighbours, weights).scores()


class Scoring:
    """Candidates with their words compared, which their meanings may follow."""

    def __init__(
        self,
        question: QueryTerms,
        found: Sequence[Evidence],
        neighbours: Mapping[str, Mapping[str, int]],
        weights: Weights = DEFAULT,
        readings: Readings | None = None,
    ) -> None:
        """Compare the words.

        Args:
            question: the question's words.
            found: all candidates, neighbours among them; of two with one id the first counts.
            neighbours: for a candidate, the units near it in its session and how many places away they are. One direction is enough.
            weights: what each part counts.
            readings: of the same question and weights, kept between calls: each text is then read once.
        """
        units = list({unit.id: unit for unit in reversed(found)}.values())
        units.reverse()
        self._units = units
        self._neighbours = neighbours
        self._weights = weights
        named, words = _named_speakers(question, units)
        match = _Matching(words, units, weights, (readings if readings is not None else {}).setdefault(words, {}))
        self._words = match.of_units()
        of_session = match.of_sessions()
        self._beside = [
            weights.session * of_session.get(unit.session_id, 0.0)
            + weights.speaker * (unit.speaker in named)
            - weights.question * unit.asks
            + weights.dated * (unit.session_id is not None and not WHEN.isdisjoint(unit.terms))
            + weights.opening * (unit.place is not None and unit.place < 2)  # noqa: PLR2004 (the opening and its answer)
            for unit in units
        ]

    def scores(self, similarities: Mapping[str, float] | None = None) -> dict[str, float]:
        """The score of every candidate. ``similarities``: of those whose evidence has none, by id."""
        told = similarities or {}
        known = [told.get(unit.id) if unit.similarity is None else unit.similarity for unit in self._units]
        alone = _alone(self._words, known, self._weights)
        scores = _with_neighbours(
            {unit.id: value for unit, value in zip(self._units, alone, strict=True)}, self._neighbours, self._weights.neighbours
        )
        for unit, value in zip(self._units, self._beside, strict=True):
            scores[unit.id] += value
        return scores


def ranked(scores: Mapping[str, float]) -> list[str]:
    """The ids, best first, ties by id."""
    return sorted(scores, key=lambda unit_id: (-scores[unit_id], unit_id))


def cross(
    scores: Mapping[str, float], crossings: Iterable[Crossing], about_named: Collection[str] = (), weights: Weights = DEFAULT
) -> dict[str, float]:
    """The scores after following names from the best units, with the units that were reached by them.

    A unit takes from the best way that leads to it, not from all: otherwise what everybody mentions would win.

    Args:
        scores: what :func:`score` gave.
        crossings: ways from the first ``weights.seeds`` of :func:`ranked`.
        about_named: ids of the units that are about a name in the question.
        weights: what each part counts.
    """
    reached: dict[str, float] = {}
    for way in crossings:
        share = (weights.about if way.about else weights.shared) / (1 + log(max(way.mentions, 1)))
        gained = share * max(scores.get(way.from_id, 0.0), 0.0)
        if way.to_id != way.from_id and gained > reached.get(way.to_id, 0.0):
            reached[way.to_id] = gained
    highest = max(scores.values(), default=0.0)
    best = highest if highest > 0 else 1.0
    after = dict(scores)
    for unit_id, gained in reached.items():
        after[unit_id] = after.get(unit_id, 0.0) + gained
    for unit_id in about_named:
        after[unit_id] = after.get(unit_id, 0.0) + weights.named * best
    return after


def _named_speakers(question: QueryTerms, units: Sequence[Evidence]) -> tuple[frozenset[str | None], tuple[Word, ...]]:
    """The speakers whom the question names, and the question's words without their names.

    A name is evidence of who speaks, not of what is said: texts are full of it where people address each other. A word that two speakers
    have in their names tells neither, and where all say their names alike nobody is told apart.
    """
    having: dict[Word, set[str]] = defaultdict(set)
    for speaker in {unit.speaker for unit in units if unit.speaker}:
        for word in query_terms(speaker).words:
            having[word].add(speaker)
    if len({speaker for speakers in having.values() for speaker in speakers}) < 2:  # noqa: PLR2004
        return frozenset(), question.words
    names = {word: speakers for word, speakers in having.items() if len(speakers) == 1}
    left = tuple(word for word in question.words if word not in names)
    return frozenset(speaker for word in question.words for speaker in names.get(word, ())), left


def _alone(words: list[float], similarities: Sequence[float | None], weights: Weights) -> list[float]:
    """Each unit by its own words and meaning, 0 to 1. What points away from the question counts as what has nothing to do with it."""
    known = [max(similarity, 0.0) for similarity in similarities if similarity is not None]
    highest = max(known, default=0.0)
    if highest <= 0:
        return words
    lowest = min(known)
    # A unit that has no vector yet is taken as no nearer than the farthest candidate, so that it is neither lost nor preferred.
    return [
        (1 - weights.meaning) * word + weights.meaning * (lowest if similarity is None else max(similarity, 0.0)) / highest
        for word, similarity in zip(words, similarities, strict=True)
    ]


def _with_neighbours(scores: Mapping[str, float], neighbours: Mapping[str, Mapping[str, int]], shares: Sequence[float]) -> dict[str, float]:
    """Each score with shares of those near it: what answers a question often stands beside what sounds like it."""
    pairs = {
        (min(one, other), max(one, other)): distance
        for one, near in neighbours.items()
        for other, distance in near.items()
        if one != other and one in scores and other in scores and 1 <= distance <= len(shares)
    }
    added = dict(scores)
    for (one, other), distance in sorted(pairs.items()):
        share = shares[distance - 1]
        added[one] += share * scores[other]
        added[other] += share * scores[one]
    return added


class _Matching:
    """The question's words against the candidates' texts."""

    def __init__(self, words: Sequence[Word], units: Sequence[Evidence], weights: Weights, read: dict[str, Reading]) -> None:
        self._weights = weights
        self._units = units
        self._lengths = [len(unit.terms) for unit in units]
        self._of_term: dict[str, list[int]] = defaultdict(list)
        self._of_prefix: dict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(words):
            for term in word:
                self._of_term[term].append(place)
            if len(word[0]) >= weights.kindred_length and word[0].isalpha():
                self._of_prefix[word[0][: weights.kindred_length]].append(place)
        self._kindred: dict[str, tuple[int, ...]] = {}
        unread = [unit for unit in units if unit.id not in read]
        if self._of_prefix:
            vocabulary = set[str]().union(*(unit.terms for unit in unread))
            self._kindred = {term: alike for term in vocabulary if (alike := self._words_like(term))}
        self._watched = frozenset(self._of_term.keys() | self._kindred.keys())
        read.update((unit.id, self._read(unit.terms)) for unit in unread)
        readings = [read[unit.id] for unit in units]
        self._hits = [reading.hits for reading in readings]
        self._counts = [reading.counts for reading in readings]
        self._rarity = self._rarities(len(words))
        self._total = sum(self._rarity)

    def of_units(self) -> list[float]:
        """How well each unit's words match, 0 to 1; the best is 1 unless nothing matches."""
        weights = self._weights
        matched = _shares(self._bm25(self._counts, self._lengths, self._rarity))
        if self._total <= 0:
            return matched
        close = [
            value + (weights.phrase * self._phrases(hits) + weights.window * self._window(hits)) / self._total if len(hits) > 1 else value
            for value, hits in zip(matched, self._hits, strict=True)
        ]
        return [value**weights.sharpness for value in _shares(close)]

    def of_sessions(self) -> dict[str | None, float]:
        """How well each session matches as one text, 0 to 1."""
        counts: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        lengths: Counter[str] = Counter()
        for unit, of_unit, length in zip(self._units, self._counts, self._lengths, strict=True):
            if unit.session_id is not None:
                lengths[unit.session_id] += length
                for place, count in of_unit.items():
                    counts[unit.session_id][place] += count
        sessions = list(lengths)
        texts: list[Mapping[int, float]] = [counts[session] for session in sessions]
        holding = Counter(place for text in texts for place in text)
        rarity = [_rarity(len(texts), holding[place]) if holding[place] else 0.0 for place in range(len(self._rarity))]
        return dict(zip(sessions, _shares(self._bm25(texts, [lengths[session] for session in sessions], rarity)), strict=True))

    def _read(self, terms: Sequence[str]) -> Reading:
        """A text's hits and counts.

        The stems of one word stand side by side in a text, so the most frequent of them counts the word.
        """
        watched, of_term, kindred_of = self._watched, self._of_term, self._kindred
        hits: list[tuple[int, int]] = []
        if watched.isdisjoint(terms):
            return Reading(hits, {})
        exact: dict[tuple[int, str], int] = {}
        kindred: dict[tuple[int, str], int] = {}
        # Most terms are none of the question's: only this line sees them all.
        for at, term in [(at, term) for at, term in enumerate(terms) if term in watched]:
            for word in of_term.get(term, ()):
                hits.append((at, word))
                exact[word, term] = exact.get((word, term), 0) + 1
            for word in kindred_of.get(term, ()):
                kindred[word, term] = kindred.get((word, term), 0) + 1
        counts: dict[int, float] = {}
        for (word, _), count in exact.items():
            counts[word] = max(counts.get(word, 0.0), count)
        for (word, _), count in kindred.items():
            counts[word] = max(counts.get(word, 0.0), self._weights.kindred * count)
        return Reading(hits, counts)

    def _words_like(self, term: str) -> tuple[int, ...]:
        """The words that begin like this term and that it is not a term of."""
        alike = self._of_prefix.get(term[: self._weights.kindred_length])
        if not alike:
            return ()
        known = self._of_term.get(term, ())
        return tuple(word for word in alike if word not in known)

    def _rarities(self, words: int) -> list[float]:
        total = max(len(self._units), self._weights.fewest_units)
        exact = Counter(word for hits in self._hits for word in {word for _, word in hits})
        kindred = Counter(word for counts in self._counts for word in counts)
        return [_rarity(total, exact[word] or kindred[word]) if kindred[word] else 0.0 for word in range(words)]

    def _bm25(self, texts: Sequence[Mapping[int, float]], lengths: Sequence[int], rarity: Sequence[float]) -> list[float]:
        k1, b = self._weights.saturation, self._weights.length
        mean = (sum(lengths) / len(lengths) if lengths else 0) or 1.0
        scores: list[float] = []
        for counts, length in zip(texts, lengths, strict=True):
            norm = k1 * (1 - b + b * length / mean)
            scores.append(sum(rarity[word] * count * (k1 + 1) / (count + norm) for word, count in sorted(counts.items())))
        return scores

    def _phrases(self, hits: Sequence[tuple[int, int]]) -> float:
        """Rarity of the pairs of words that follow each other in the question and, within a few terms, in the text."""
        pairs: set[int] = set()
        for index, (at, word) in enumerate(hits):
            for later, following in hits[index + 1 : index + 6]:
                if later - at > 3:  # noqa: PLR2004 (each word is up to two terms)
                    break
                if following == word + 1:
                    pairs.add(word)
        return sum(min(self._rarity[word], self._rarity[word + 1]) for word in sorted(pairs))

    def _window(self, hits: Sequence[tuple[int, int]]) -> float:
        """Rarity of the different words in the densest stretch of the text."""
        best = current = 0.0
        inside = dict.fromkeys([word for _, word in hits], 0)
        if len(inside) == 1:
            return self._rarity[hits[0][1]]
        first = 0
        for at, word in hits:
            if not inside[word]:
                current += self._rarity[word]
            inside[word] += 1
            while at - hits[first][0] > self._weights.window_terms:
                left = hits[first][1]
                inside[left] -= 1
                if not inside[left]:
                    current -= self._rarity[left]
                first += 1
            best = max(best, current)
        return best


def _rarity(texts: int, holding: int) -> float:
    """BM25's inverse document frequency as Lucene has it, never negative."""
    return log(1 + (texts - holding + 0.5) / (holding + 0.5))


def _shares(values: Sequence[float]) -> list[float]:
    highest = max(values, default=0.0)
    return [value / highest for value in values] if highest > 0 else [0.0 for _ in values]
