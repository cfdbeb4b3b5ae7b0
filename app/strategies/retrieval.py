"""About a topic: what says the same words or means the same, what stands beside it, and what shares a name with it (S3, S5, S8, S9).

The database finds candidates and hands over their words, not their text; how well they fit is told by ``app.strategies.scoring``, so that an
answer is the same on every engine and nothing that the caller may not see moves it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from anyio import to_thread

from app.embedding import Embedding
from app.router.planner import Plan
from app.strategies.scoring import Crossing, Evidence, Readings, Scoring, Weights, cross, ranked
from graph.model.answer import SearchReceipt
from graph.model.candidates import Candidate, Found
from graph.model.entities import names_in
from graph.model.errors import DeadlineExceeded
from graph.model.query import StrategyName
from graph.model.search_text import QueryTerms, query_terms
from graph.search_store import EntityWalk, Hit, SearchStore, TextFound, hit
from graph.vector_store import Nearest, VectorStore

POOL = 400
"""Units taken from the full-text index."""
POOL_INSTEAD = 100
"""The same where words alone are searched because there was no time for more."""
NEAREST = 300
"""Units taken by meaning."""
ANCHORS = 300
"""Best units whose neighbours in their sessions come in too."""
REACH = 2
"""Neighbours on each side."""
MOST_SHARED = 40
"""A name that more units of the caller's share is not crossed."""
COMPARED_TOKENS = 10
"""One unit for each so many tokens of the budget is compared by meaning at the most: what ranks lower cannot come into the answer by it."""
FEWEST_COMPARED = 200
VECTOR_SHARE = 0.6
"""Of the time for a search, what its meaning may take; the words do not wait for it."""
MOST = 600
"""Candidates at the most."""
LONG_TOPIC = 5_000
"""Characters from which on the words of a topic are looked for in a thread."""
NOT_BESIDE = "There was no time to look beside what was found."
NOT_OVER_NAMES = "There was no time to look for what shares its names."
NOT_COMPARED = "There was no time to compare all meanings."
DROPPED_TOLD = 100
"""Words that a receipt names."""


Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What the search by meaning came to."""

    vector: tuple[float, ...] | None = None
    nearest: Nearest | None = None
    note: str | None = None
    embedding_ms: float = 0.0
    failed: bool = False
    """Whether there should have been one."""


class Retrieval:
    """Searches for the topic of a plan."""

    def __init__(self, searches: SearchStore, vectors: VectorStore, embedding: Embedding, weights: Weights) -> None:
        self._searches = searches
        self._vectors = vectors
        self._embedding = embedding
        self._weights = weights

    async def search(self, plan: Plan, deadline_s: float) -> Found:
        """Candidates by words and by meaning, with their neighbours and what shares their names.

        Raises:
            DeadlineExceeded: the words were not searched for within ``deadline_s`` seconds. What else is late is left out, and said.
        """
        ends = monotonic() + deadline_s
        topic = topic_of(plan)
        asked = await _words_of(topic)
        by_text, by_meaning = await asyncio.gather(self._by_text(plan, asked, ends), self._by_meaning(plan, topic, ends))
        pool = _pooled(by_text, by_meaning)
        readings: Readings = {}
        first = self._scoring(asked, pool, readings)
        own = first.scores()
        best = ranked(own)
        names = names_in(topic)
        beside, walk = await asyncio.gather(
            unless_late(self._beside(plan, [pool[unit_id] for unit_id in best[:ANCHORS]], pool, ends)),
            unless_late(self._over_names(plan, best[: self._weights.seeds], names, ends)),
        )
        every = pool | {
            found.candidate.id: found for found in (*(beside or ()), *(walk.hits if walk else ())) if found.candidate.id not in pool
        }
        # The same candidates with nothing more known of them have the same scores.
        scoring = first if len(every) == len(pool) else self._scoring(asked, every, readings)
        own = own if scoring is first else scoring.scores()
        compared = await unless_late(self._compared(plan, every, own, by_meaning, ends))
        own = scoring.scores(compared) if compared else own
        scores = self._crossed(own, walk or EntityWalk(), best, names)
        reasons = _Reasons(by_text, pool, beside or [])
        candidates = [
            found.candidate._replace(score=scores[unit_id], reason=reasons.of(unit_id))
            for unit_id, found in every.items()
            if scores[unit_id] > 0
        ]
        late = [note for part, note in ((beside, NOT_BESIDE), (walk, NOT_OVER_NAMES), (compared, NOT_COMPARED)) if part is None]
        return Found(
            tuple(sorted(candidates, key=lambda item: (-item.score, item.id))[:MOST]),
            search=_receipt(asked, by_text, by_meaning, len(beside or ()), len(walk.crossings) if walk else 0),
            notes=(*([by_meaning.note] if by_meaning.note is not None else []), *late),
            partial=bool(late) or by_meaning.failed,
        )

    async def words(self, plan: Plan, deadline_s: float) -> Found:
        """Candidates by their words alone: one statement.

        Raises:
            DeadlineExceeded: ``deadline_s`` seconds passed.
        """
        topic = topic_of(plan)
        asked = await _words_of(topic)
        # Where this stands in for a strategy that had no time, the best few are enough.
        pool = POOL if plan.strategies[0] is StrategyName.TEXT else POOL_INSTEAD
        by_text = await self._by_text(plan, asked, monotonic() + deadline_s, pool)
        scores = self._scoring(asked, {found.candidate.id: found for found in by_text.hits}).scores()
        found = [item.candidate._replace(score=scores[item.candidate.id], reason="text") for item in by_text.hits]
        candidates = sorted((item for item in found if item.score > 0), key=lambda item: (-item.score, item.id))
        note = "Only words were searched for."
        return Found(tuple(candidates), search=_receipt(asked, by_text, _Meaning(), 0, 0), notes=(note,))

    async def sharing_names(self, plan: Plan, near: Sequence[Candidate], deadline_s: float) -> list[Candidate]:
        """Units that share names with these, best first, scores on 0 to 1: the rarer the name and the better what mentions it, the more.

        Raises:
            DeadlineExceeded: ``deadline_s`` seconds passed.
        """
        worth = {item.id: item.score for item in near}
        walk = await self._searches.over_entities(
            plan.scope, worth.keys(), (), plan.window, plan.query.kinds, MOST_SHARED, deadline_s=deadline_s
        )
        scores: dict[str, float] = defaultdict(float)
        for crossing in walk.crossings:
            sharing = crossing.about | crossing.mentions
            from_here = max((worth[unit_id] for unit_id in sharing if unit_id in worth), default=0.0)
            for unit_id in sharing - worth.keys():
                scores[unit_id] += from_here / len(sharing)
        highest = max(scores.values(), default=0.0) or 1.0
        found = [
            item.candidate._replace(score=scores[item.candidate.id] / highest, reason="name")
            for item in walk.hits
            if scores.get(item.candidate.id)
        ]
        return sorted(found, key=lambda item: (-item.score, item.id))

    async def _by_text(self, plan: Plan, asked: QueryTerms, ends: float, pool: int = POOL) -> TextFound:
        return await self._searches.by_text(plan.scope, asked.terms, plan.window, plan.query.kinds, pool, deadline_s=ends - monotonic())

    async def _by_meaning(self, plan: Plan, topic: str, ends: float) -> _Meaning:
        """Never late and never fails: a search by words does not depend on it."""
        usable = await self._embedding.search_by_meaning()
        if not usable.on:
            return _Meaning(note=usable.note)
        began = monotonic()
        until = began + (ends - began) * VECTOR_SHARE
        told = await self._embedding.vector_of(topic, until - began)
        embedding_ms = round((monotonic() - began) * 1000, 2)
        if told.vector is None:
            return _Meaning(note=told.note, embedding_ms=embedding_ms, failed=True)
        try:
            nearest = await self._vectors.nearest(
                plan.scope, told.vector, plan.window, NEAREST, until - monotonic(), kinds=plan.query.kinds
            )
        except DeadlineExceeded:
            note = "The search by meaning was not done in time: only words were searched for."
            return _Meaning(told.vector, note=note, embedding_ms=embedding_ms, failed=True)
        return _Meaning(told.vector, nearest, usable.note, embedding_ms)

    async def _over_names(self, plan: Plan, seeds: Sequence[str], names: Sequence[str], ends: float) -> EntityWalk:
        return await self._searches.over_entities(
            plan.scope, seeds, names, plan.window, plan.query.kinds, MOST_SHARED, deadline_s=ends - monotonic()
        )

    async def _compared(
        self, plan: Plan, every: Mapping[str, Hit], scores: Mapping[str, float], meaning: _Meaning, ends: float
    ) -> dict[str, float]:
        """How near the meanings of those hits are that may come into the answer and were not found by meaning."""
        room = max(plan.query.budget_tokens // COMPARED_TOKENS, FEWEST_COMPARED)
        unknown = [unit_id for unit_id in ranked(scores)[:room] if every[unit_id].similarity is None]
        if meaning.vector is None or meaning.nearest is None or not unknown:
            return {}
        return await self._vectors.similarities(plan.scope, meaning.vector, unknown, deadline_s=ends - monotonic())

    def _scoring(self, asked: QueryTerms, found: Mapping[str, Hit], readings: Readings | None = None) -> Scoring:
        return Scoring(asked, [_evidence(item) for item in found.values()], _near(found.values()), self._weights, readings)

    def _crossed(self, own: Mapping[str, float], walk: EntityWalk, best: Sequence[str], names: Sequence[str]) -> dict[str, float]:
        named = {unit_id for crossing in walk.crossings if crossing.key in names for unit_id in crossing.about}
        return cross(own, _ways(walk, best[: self._weights.seeds]), named & own.keys(), self._weights)

    async def _beside(self, plan: Plan, anchors: Sequence[Hit], pool: dict[str, Hit], ends: float) -> list[Hit]:
        known = {(found.session_id, found.place) for found in pool.values()}
        places = {
            (anchor.session_id, anchor.place + distance)
            for anchor in anchors
            if anchor.session_id is not None and anchor.place is not None
            for distance in range(-REACH, REACH + 1)
            if anchor.place + distance > 0
        }
        wanted = [place for place in places if place not in known]
        return await self._searches.at_places(plan.scope, wanted, plan.window, plan.query.kinds, deadline_s=ends - monotonic())


async def _words_of(topic: str) -> QueryTerms:
    return query_terms(topic) if len(topic) < LONG_TOPIC else await to_thread.run_sync(query_terms, topic)


def topic_of(plan: Plan) -> str:
    """What the plan searches for: its topic, or else the caller's own question."""
    return plan.query.topic or plan.query.question or ""


def _evidence(found: Hit) -> Evidence:
    item = found.candidate
    return Evidence(
        id=item.id,
        terms=found.terms,
        session_id=found.session_id,
        place=None if found.place is None else found.place - 1,
        speaker=item.actor or item.agent_id,
        similarity=found.similarity,
        asks=found.asks,
    )


def _near(hits: Iterable[Hit]) -> dict[str, dict[str, int]]:
    """Who of these stands behind whom in a session, and how many places away."""
    at = {(found.session_id, found.place): found.candidate.id for found in hits if found.session_id is not None and found.place is not None}
    near: dict[str, dict[str, int]] = {}
    for (session_id, place), unit_id in at.items():
        assert place is not None
        behind = {distance: at.get((session_id, place + distance)) for distance in range(1, REACH + 1)}
        near[unit_id] = {other: distance for distance, other in behind.items() if other is not None}
    return near


def _ways(walk: EntityWalk, seeds: Collection[str]) -> Iterator[Crossing]:
    """From the best units over the names that they share."""
    for shared in walk.crossings:
        sharing = shared.about | shared.mentions
        mentions = max(len(sharing), 1)
        for from_id in sorted(sharing & set(seeds)):
            for to_id in sorted(sharing):
                if to_id != from_id:
                    yield Crossing(from_id, to_id, mentions, about=to_id in shared.about)


def _pooled(by_text: TextFound, meaning: _Meaning) -> dict[str, Hit]:
    """What both arms found, each unit once."""
    pool = {found.candidate.id: found for found in by_text.hits}
    for row in meaning.nearest.hits if meaning.nearest is not None else ():
        found = hit(row)
        known = pool.get(found.candidate.id)
        pool[found.candidate.id] = found if known is None else known._replace(similarity=found.similarity)
    return pool


async def unless_late(work: Awaitable[Part]) -> Part | None:
    """What a part of the search came to; None when it was not done in time."""
    try:
        return await work
    except DeadlineExceeded:
        return None


class _Reasons:
    """How each candidate was come upon."""

    def __init__(self, by_text: TextFound, pool: dict[str, Hit], beside: Iterable[Hit]) -> None:
        self._by_text = {found.candidate.id for found in by_text.hits}
        self._pool = pool
        self._beside = {found.candidate.id for found in beside}

    def of(self, unit_id: str) -> str:
        if unit_id in self._by_text:
            return "text"
        if unit_id in self._pool:
            return "meaning"
        return "neighbour" if unit_id in self._beside else "name"


def _receipt(asked: QueryTerms, by_text: TextFound, meaning: _Meaning, neighbours: int, names: int) -> SearchReceipt:
    nearest = meaning.nearest
    return SearchReceipt(
        words_dropped=list(asked.dropped[:DROPPED_TOLD]),
        words_dropped_count=len(asked.dropped),
        found_by_text=len(by_text.hits),
        text_complete=by_text.complete,
        vectors="off" if nearest is None else nearest.method,
        found_by_vectors=0 if nearest is None else len(nearest.hits),
        vectors_complete=nearest is None or nearest.complete,
        neighbours=neighbours,
        names_crossed=names,
        embedding_ms=meaning.embedding_ms,
    )
