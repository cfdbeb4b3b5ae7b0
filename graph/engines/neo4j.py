"""A Neo4j that somebody else runs: known by its URI, never started or stopped from here."""

from __future__ import annotations

from graph.engines.base import Address
from graph.model.errors import EngineFailure


class GivenNeo4j:
    """An engine that is only an address. Whether it answers is found out by the first statement, not here."""

    name = "neo4j"

    def __init__(self, uri: str, user: str, password: str, database: str | None = None) -> None:
        self._address = Address(uri=uri, user=user, password=password, database=database)

    async def start(self) -> Address:
        return self._address

    async def stop(self) -> None:
        """Nothing: the server is not ours."""

    @property
    def alive(self) -> bool:
        return True

    async def restarted(self) -> bool:
        """False: nobody tells us; the driver reconnects by itself."""
        return False

    async def sql(self, command: str, deadline_s: float = 30.0) -> list[dict[str, object]]:  # noqa: ARG002 - the protocol's form
        raise EngineFailure("Neo4j has no SQL.", hint="Use a statement from cypher/; SQL is for the embedded engine.")
