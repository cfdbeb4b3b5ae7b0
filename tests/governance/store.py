"""A look at the database itself, beside every door: what a search of all nodes and edges finds."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import neo4j
from conftest import Service

from graph.engines.embedded import EmbeddedEngine


class Store:
    """The driver itself."""

    def __init__(self, service: Service, driver: neo4j.Driver, database: str | None) -> None:
        self._service = service
        self._driver = driver
        self._database = database

    def rows(self, text: str, **values: Any) -> list[dict[str, Any]]:
        """All rows of a statement; tried again when a job of the service changed the same nodes."""

        def work(transaction: neo4j.ManagedTransaction) -> list[dict[str, Any]]:
            return [record.data() for record in transaction.run(text, values)]  # type: ignore[arg-type]

        with self._driver.session(database=self._database) as session:  # pyright: ignore[reportUnknownMemberType]
            return session.execute_write(work)

    def places_of(self, marker: str) -> list[str]:
        """Every property of a node or edge that holds the marker, whatever its label, and every label or type that does."""
        found: list[str] = []
        nodes = self.rows("MATCH (n) RETURN labels(n) AS names, properties(n) AS told")
        edges = self.rows("MATCH ()-[r]->() RETURN [type(r)] AS names, properties(r) AS told")
        for row in [*nodes, *edges]:
            for name, value in row["told"].items():
                if marker in str(value) or marker in name:
                    found.append(f"{row['names']}.{name}")
            found += [name for name in row["names"] if marker in name]
        return found

    def places_in_sql(self, marker: str) -> list[str]:
        """The same by the embedded engine's own language, record by record."""
        engine = self._service.lastro.engine
        assert isinstance(engine, EmbeddedEngine)
        found: list[str] = []
        for kind in self._service.run(engine.sql("SELECT name FROM schema:types")):
            records = self._service.run(engine.sql(f"SELECT * FROM `{kind['name']}` LIMIT 1000000"))  # noqa: S608 (names of the schema itself)
            found += [str(kind["name"]) for record in records if marker in str(record)]
        return found

    def of_tenant(self, tenant: str) -> list[str]:
        """Labels of the nodes that bear a tenant's name in any property."""
        nodes = self.rows("MATCH (n) RETURN labels(n) AS names, properties(n) AS told")
        return [str(row["names"]) for row in nodes if any(tenant in str(value) for value in row["told"].values())]


@contextmanager
def store_of(service: Service) -> Generator[Store]:
    address = service.run(service.lastro.engine.start())
    with neo4j.GraphDatabase.driver(address.uri, auth=(address.user, address.password)) as driver:  # pyright: ignore[reportUnknownMemberType]
        yield Store(service, driver, address.database)
