"""Units found by the words that they hold, and what stands beside them in their sessions (S3, S5, S9)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

from graph.access import UNREAD_MARGIN, access_of
from graph.connection import Database
from graph.context_store import Window
from graph.model.candidates import Candidate
from graph.model.scope import AuthorizedScope
from graph.model.search_text import index_clause
from graph.model.units import Kind
from graph.order_keys import session_place
from graph.statements import Dialect, Row
from graph.unit_rows import candidate

MOST_LOOKED_AT = 6_400
"""Units that the index is asked for at the most, where conditions that it does not know (time, kind, step) leave few of them."""
GROWTH = 4
MOST_EDGES = 256
"""Edges of one name that are looked at."""


class Hit(NamedTuple):
    """A unit that search came upon, without its text. A tuple for the reason that a candidate is one."""

    candidate: Candidate
    terms: tuple[str, ...]
    """What it says, as search knows words, in their order."""
    session_id: str | None
    place: int | None
    """Its place in the session, counted from 1 in the order of arrival."""
    asks: bool
    """Whether it only asks."""
    similarity: float | None = None
    """Cosine of its meaning with the question's, from -1 to 1; None when that was not compared."""


@dataclass(frozen=True, slots=True)
class TextFound:
    """What a search by words found."""

    hits: tuple[Hit, ...]
    looked_at: int
    """Units that the index gave."""
    complete: bool
    """False when the index held more than was looked at."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A name that is shared, and by whom."""

    key: str
    about: frozenset[str]
    """Units that are about it."""
    mentions: frozenset[str]
    """Units that mention it."""


@dataclass(frozen=True, slots=True)
class EntityWalk:
    """What a walk over shared names came to."""

    crossings: tuple[Crossing, ...] = ()
    hits: tuple[Hit, ...] = ()


def text_index(dialect: Dialect) -> str:
    """The name that an engine gives the full-text index."""
    return "ContextUnit[search_text,access]" if dialect is Dialect.EMBEDDED else "unit_text"


def hit(row: Row) -> Hit:
    """A row of the statements of ``search/`` and ``vectors/``."""
    place = row["session_place"]
    return Hit(
        candidate(row, 0.0, "found"),
        tuple(str(row["terms"] or "").split()),
        row["session_id"],
        None if place is None else int(str(place).rsplit(" ", 1)[-1]),
        bool(row["asks"]),
        row.get("similarity"),
    )


class SearchStore:
    """Searches within what a scope may see."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._index = text_index(database.statements.dialect)

    async def by_text(
        self, scope: AuthorizedScope, terms: Sequence[str], window: Window, kinds: Collection[Kind] | None, limit: int, *, deadline_s: float
    ) -> TextFound:
        """The ``limit`` units that the index ranks first for these terms, all that there are if they are fewer.

        Raises:
            DeadlineExceeded: ``deadline_s`` seconds passed.
        """
        access = access_of(scope)
        if not terms or not access.clause:
            return TextFound((), 0, complete=True)
        ends = monotonic() + deadline_s
        query = f"{index_clause('search_text', terms)} {access.clause}"
        asked = limit if access.exact else limit * UNREAD_MARGIN
        while True:
            row = (
                await self._database.read(
                    "search/search_units_by_text",
                    scope,
                    deadline_s=ends - monotonic(),
                    index=self._index,
                    query=query,
                    limit=asked,
                    **window.conditions(kinds),
                )
            )[0]
            rows, looked_at = row["rows"], int(row["looked_at"])
            if len(rows) >= limit or looked_at < asked or asked >= MOST_LOOKED_AT:
                break
            asked = min(asked * GROWTH, MOST_LOOKED_AT)
        return TextFound(tuple(hit(found) for found in rows[:limit]), looked_at, complete=looked_at < asked)

    async def at_places(
        self,
        scope: AuthorizedScope,
        places: Collection[tuple[str, int]],
        window: Window,
        kinds: Collection[Kind] | None,
        *,
        deadline_s: float,
    ) -> list[Hit]:
        """The units at places (session id, place) that the caller may see, in no particular order. Raises as ``by_text``."""
        if not places:
            return []
        keys = sorted(session_place(scope.tenant_id, session_id, place) for session_id, place in places)
        rows = await self._database.read(
            "search/read_units_by_session_place", scope, deadline_s=deadline_s, keys=keys, **window.conditions(kinds)
        )
        return [hit(row) for row in rows[0]["rows"]]

    async def over_entities(
        self,
        scope: AuthorizedScope,
        unit_ids: Collection[str],
        names: Collection[str],
        window: Window,
        kinds: Collection[Kind] | None,
        most: int,
        *,
        deadline_s: float,
    ) -> EntityWalk:
        """Over what the units speak of, and over the ``names`` of a question, to the units that share it. ``most``: how many of the caller's
        units may share a name that is still crossed. Raises as ``by_text``.
        """
        if not unit_ids and not names:
            return EntityWalk()
        row = (
            await self._database.read(
                "search/walk_entities",
                scope,
                deadline_s=deadline_s,
                ids=sorted(unit_ids),
                keys=sorted(names),
                looked_at=MOST_EDGES,
                most=most,
                **window.conditions(kinds),
            )
        )[0]
        return EntityWalk(
            tuple(
                Crossing(
                    str(entity["key"]),
                    frozenset(str(met["id"]) for met in entity["met"] if met["how"] == "ABOUT"),
                    frozenset(str(met["id"]) for met in entity["met"] if met["how"] == "MENTIONS"),
                )
                for entity in row["entities"]
            ),
            tuple(hit(found) for found in row["rows"]),
        )
