"""The vector index: made at start for the embedder that is set, remade for another."""

from __future__ import annotations

from graph.connection import Database
from graph.statements import Dialect

INDEX_DEADLINE_S = 600.0
"""The embedded engine builds an index before it answers: some 20 s for 20,000 units."""


def index_name(dialect: Dialect) -> str:
    """The index as procedures and functions of an engine call it."""
    return "ContextUnit[embedding]" if dialect is Dialect.EMBEDDED else "unit_embedding"


class VectorIndex:
    """Makes and drops the index over the embeddings of units."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, dimensions: int) -> None:
        """Make it, unless it is there. Neo4j goes on filling it behind.

        Raises:
            EngineFailure, DatabaseUnavailable, DeadlineExceeded: it may not be there.
        """
        await self._database.autocommit("vectors/create_index", dimensions=dimensions, deadline_s=INDEX_DEADLINE_S)

    async def drop(self) -> None:
        """Remove it, if it is there. Raises as ``create``."""
        await self._database.autocommit("vectors/drop_index", deadline_s=INDEX_DEADLINE_S)

    async def online(self) -> bool:
        """Whether it is there and holds all that it should."""
        name = index_name(self._database.statements.dialect)
        rows = await self._database.autocommit("service/list_indexes")
        return any(row["name"] == name and str(row["state"]).upper() == "ONLINE" for row in rows)
