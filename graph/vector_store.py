"""Units by the nearness of their meaning to a question's (S3, S4, S5). Embeddings are compared in the database and never leave it.

A caller who may see few units gets them all compared, one by one: a full-text index with who may see a unit among its terms finds them, so
what others own costs nothing. Above a bound the vector index of the engine is asked, by what it can:

=================  ===================================================================================================
Neo4j, newest      the tenant is a condition inside the index; who may see a unit, over what it gives, with ever more
embedded           ever more of all, and where that does not do, a search within the units that the caller may see
Neo4j 5            ever more of all, up to a bound; the answer then says that it may not be all
=================  ===================================================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil
from time import monotonic
from typing import Any, Literal

from graph.access import UNREAD_MARGIN, access_of
from graph.connection import Database, StatementFailed
from graph.context_store import Window
from graph.model.scope import AuthorizedScope
from graph.model.units import Kind
from graph.search_store import text_index
from graph.statements import Dialect, Row
from graph.vector_index import index_name

EXACT_MOST = 5_000
"""Units up to which all are compared: about 0.1 s for vectors of 384 dimensions (reference: 14 to 20 µs a unit)."""
EXACT_MOST_NEO4J_5 = 10_000
"""Its index cannot filter, so comparing goes further there: about 0.2 s."""
MORE_SHARE = 1 / 3
FEWEST_MORE = 40
"""How many more than wanted are asked of an index at first, since its own order is rough; what comes is compared exactly. Of 300 wanted it then
misses one, in half the time of asking for four times as many (docs/benchmarks.md)."""
MORE_TIMES = 4
AMONG_TIMES = 4
"""How many times more than wanted are asked for within what the caller may see, where nothing more is asked for when conditions leave too few."""
MOST_FETCHED = 16_384
"""Units that are asked of an index at the most."""
MOST_AMONG = 100_000
"""Units that the embedded engine searches within."""
LARGE_FOR_S = 60.0
"""How long a caller counts as one who sees more than ``EXACT_MOST`` before that is looked at again. Either way gives a right answer."""
MOST_REMEMBERED = 10_000
REFUSED_FOR_S = 60.0
"""How long the newest Neo4j is asked without the tenant after it failed with it."""
WARM_ROUNDS = 3
WARM_LIMIT = 10
WARM_S = 20.0

Method = Literal["exact", "index", "index_over_fetch"]


@dataclass(frozen=True, slots=True)
class Nearest:
    """What a search by meaning found."""

    hits: list[Row]
    """Best first: the columns of the statements of ``context/``, ``session_id``, ``session_place``, ``terms`` and ``similarity``, the cosine from
    -1 to 1.
    """
    method: Method
    """All were compared, an index gave enough at once, or it was asked for more than was wanted until enough of it could be seen."""
    looked_at: int
    """Units that were compared or that the index gave."""
    complete: bool
    """False when there may be nearer ones that the caller may see: a bound or the time ended the search, or an index is being built."""


class VectorStore:
    """Finds units by vectors of one model."""

    def __init__(self, database: Database, model: str | None) -> None:
        self._database = database
        self._model = model or ""
        self._dialect = database.statements.dialect
        self._index = index_name(self._dialect)
        self._text_index = text_index(self._dialect)
        self._exact_most = EXACT_MOST_NEO4J_5 if self._dialect is Dialect.NEO4J_5 else EXACT_MOST
        self.most_fetched = MOST_FETCHED
        """Units that an index is asked for at the most."""
        self._refused: dict[str, float] = {}
        self._large: dict[int, tuple[float, int]] = {}
        """Until when a caller counts as one who sees many units, and how many the index was asked for to give that one enough."""

    async def nearest(
        self,
        scope: AuthorizedScope,
        vector: Sequence[float],
        window: Window,
        limit: int,
        deadline_s: float,
        *,
        kinds: Collection[Kind] | None = None,
    ) -> Nearest:
        """The ``limit`` units nearest to a vector (of length 1) that the caller may see within the window.

        Raises:
            DeadlineExceeded: nothing was found within ``deadline_s`` seconds.
            DatabaseUnavailable, StatementFailed: the database cannot be asked.
        """
        ends = monotonic() + deadline_s
        access = access_of(scope)
        if not access.clause:
            return Nearest([], "exact", 0, complete=True)
        asked: dict[str, object] = {
            "vector": list(vector),
            "model": self._model,
            "limit": limit,
            **window.conditions(kinds),
        }
        visible: dict[str, str] = {"text_index": self._text_index, "query": access.clause}
        if not self._is_large(scope.tenant_id, access.clause):
            row = await self._row("find_nearest_exactly", scope, deadline_s, **visible, most=self._exact_most, **asked)
            if row["looked_at"] <= self._exact_most:
                return self._nearest(row, "exact", complete=True)
            self._remember(scope.tenant_id, access.clause, 0)
        try:
            return await self._by_index(scope, asked, visible, ends, margin=1 if access.exact else UNREAD_MARGIN)
        except StatementFailed:
            # The index is not there, or is being filled.
            return Nearest([], "index", 0, complete=False)

    async def warm(self, scope: AuthorizedScope, dimensions: int) -> None:
        """Run every statement of these, which plans and compiles them: the first time takes an engine up to a second.

        Raises:
            DatabaseUnavailable, DeadlineExceeded: as ``nearest``.
        """
        vector = [1.0] + [0.0] * (dimensions - 1)
        for _ in range(WARM_ROUNDS):
            await self.nearest(scope, vector, Window(), WARM_LIMIT, WARM_S)
            await self.similarities(scope, vector, ["none"], deadline_s=WARM_S)
            self._remember(scope.tenant_id, access_of(scope).clause, 0)
            await self.nearest(scope, vector, Window(), WARM_LIMIT, WARM_S)
            self._large.clear()

    async def similarities(
        self, scope: AuthorizedScope, vector: Sequence[float], unit_ids: Sequence[str], *, deadline_s: float = 5.0
    ) -> dict[str, float]:
        """Cosine by unit id, of those that have an embedding and that the caller may see. Raises as ``nearest``."""
        if not unit_ids:
            return {}
        rows = await self._database.read(
            "vectors/read_similarities", scope, ids=list(unit_ids), vector=list(vector), model=self._model, deadline_s=deadline_s
        )
        return {str(unit_id): self._cosine(similarity) for unit_id, similarity in rows[0]["rows"]}

    async def _by_index(
        self, scope: AuthorizedScope, asked: dict[str, object], visible: dict[str, str], ends: float, *, margin: int
    ) -> Nearest:
        limit = int(str(asked["limit"]))
        if self._dialect is Dialect.NEO4J_2026 and self._refused.get(scope.tenant_id, 0.0) <= monotonic():
            try:
                row, fetched, grown = await self._growing("find_nearest_in_tenant", scope, ends, limit, asked)
            except StatementFailed:
                # Seen where all that a part of the index held of a tenant had just been erased; it passes when parts are merged.
                self._refused[scope.tenant_id] = monotonic() + REFUSED_FOR_S
            else:
                return self._nearest(row, "index_over_fetch" if grown else "index", complete=_is_complete(row, limit, fetched))
        row, fetched, grown = await self._growing("find_nearest_by_index", scope, ends, limit, {**asked, "index": self._index})
        complete = _is_complete(row, limit, fetched)
        if complete or self._dialect is not Dialect.EMBEDDED:
            return self._nearest(row, "index_over_fetch", complete=complete)
        # A list of all of a large tenant's units takes the engine a while, so this comes last.
        most, nearest = min(MOST_AMONG * margin, 2 * MOST_AMONG), AMONG_TIMES * limit
        told = {**asked, **visible, "most": most, "nearest": nearest, "index": self._index}
        row = await self._row("find_nearest_among", scope, ends - monotonic(), **told)
        return self._nearest(row, "index", complete=_is_complete(row, limit, nearest))

    async def _growing(self, name: str, scope: AuthorizedScope, ends: float, limit: int, asked: dict[str, object]) -> tuple[Row, int, bool]:
        """Ask for more until enough of it may be seen: the last answer, how many were asked for, and whether more than a first try asks for.

        What was enough for this caller a moment ago is asked for at once.
        """
        clause = access_of(scope).clause
        _, enough = self._large.get(hash((scope.tenant_id, clause)), (0.0, 0))
        fetched = min(max(_first(limit), enough), self.most_fetched)
        grown = fetched > _first(limit)
        while True:
            row = await self._row(name, scope, ends - monotonic(), nearest=fetched, **asked)
            if _is_complete(row, limit, fetched) or fetched >= self.most_fetched:
                if grown and fetched != enough:
                    self._remember(scope.tenant_id, clause, fetched)
                return row, fetched, grown
            grown = True
            fetched = min(fetched * MORE_TIMES, self.most_fetched)

    async def _row(self, name: str, scope: AuthorizedScope, deadline_s: float, **params: Any) -> Row:
        return (await self._database.read(f"vectors/{name}", scope, deadline_s=deadline_s, **params))[0]

    def _nearest(self, row: Row, method: Method, *, complete: bool) -> Nearest:
        hits = [{**hit, "similarity": self._cosine(hit["similarity"])} for hit in row["rows"]]
        return Nearest(hits, method, int(row["looked_at"]), complete)

    def _cosine(self, told: float) -> float:
        """The function of that name gives the cosine on the embedded engine, and (1 + cosine) / 2 on Neo4j."""
        return told if self._dialect is Dialect.EMBEDDED else 2 * told - 1

    def _is_large(self, tenant_id: str, clause: str) -> bool:
        until, _ = self._large.get(hash((tenant_id, clause)), (0.0, 0))
        return until > monotonic()

    def _remember(self, tenant_id: str, clause: str, fetched: int) -> None:
        if len(self._large) >= MOST_REMEMBERED:
            self._large.clear()
        self._large[hash((tenant_id, clause))] = (monotonic() + LARGE_FOR_S, fetched)


def _first(limit: int) -> int:
    return limit + max(ceil(limit * MORE_SHARE), FEWEST_MORE)


def _is_complete(row: Row, limit: int, fetched: int) -> bool:
    """Whether there is enough, or the index gave all it has."""
    return len(row["rows"]) >= limit or row["looked_at"] < fetched
