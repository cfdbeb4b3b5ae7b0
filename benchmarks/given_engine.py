"""An engine that a benchmark has started, for Lastro in this process and, by `python -m benchmarks.given_engine`, in another one.

A service can be given a Neo4j by its settings. The embedded engine is always its own child; here it is given by its address too, so that the
raw driver, the service and this process speak to the same one. Nothing else of `lastro` differs.
"""

from __future__ import annotations

import os
from unittest.mock import patch

from app import bootstrap
from app.cli.main import run
from app.settings import Settings
from graph.engines.base import Address
from graph.engines.sql import SqlDoor

HTTP_URI = "LASTRO_BENCH_HTTP_URI"
"""In the environment of a service: where the embedded engine takes SQL. Bolt's address is in the settings for Neo4j."""


class GivenEngine:
    """An engine that is only an address: never started or stopped from here."""

    name = "given"

    def __init__(self, address: Address) -> None:
        self._address = address

    async def start(self) -> Address:
        return self._address

    async def stop(self) -> None:
        """Nothing: its owner does."""

    @property
    def alive(self) -> bool:
        return True

    async def restarted(self) -> bool:
        """False: when it dies, the benchmark has failed."""
        return False

    async def sql(self, command: str, deadline_s: float = 30.0) -> list[dict[str, object]]:
        door = SqlDoor(self._address)
        try:
            return await door.run(command, deadline_s)
        finally:
            await door.close()


def _engine_of(settings: Settings) -> GivenEngine:
    password = settings.neo4j_password.get_secret_value()
    return GivenEngine(Address(settings.neo4j_uri, settings.neo4j_user, password, settings.neo4j_database, os.environ[HTTP_URI]))


if __name__ == "__main__":
    with patch.object(bootstrap, "engine_of", _engine_of):
        run()
