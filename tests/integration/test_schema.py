"""Migrations: several replicas at once, one that died, one that is older; on every engine. Each test leaves the schema whole."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from api.wire import read, stored
from conftest import Service, unit

from graph import schema
from graph.connection import Database, connect
from graph.model.errors import SchemaTooNew
from graph.schema import migrate, missing_indexes
from graph.statements import Language, Mode, Row, Statement, parse_statement

HEADER = "// mode: autocommit\n// params: {params}\n// returns: n: int\n// scope: exempt: a statement of a test\n// For a test.\n"
MADE = re.compile(r"CREATE (?:FULLTEXT )?(INDEX|CONSTRAINT) (\w+)")
MADE_BY_SQL = re.compile(r"CREATE INDEX IF NOT EXISTS ON (\w+) \(([^)]*)\)")


def number_of(step: Statement) -> int:
    return int(step.name.rsplit("/", 1)[-1].split("_")[0])


def made_by(step: Statement) -> str | None:
    """The index or constraint that a step makes, by the name that the engine gives it."""
    if step.language is Language.SQL:
        found = MADE_BY_SQL.search(step.text)
        return None if found is None else f"{found[1]}[{found[2].replace(' ', '')}]"
    found = MADE.search(step.text)
    return None if found is None else found[2]


class Replica:
    """A connection of its own, and what a person with a Cypher prompt could do."""

    def __init__(self, service: Service, database: Database) -> None:
        self.service = service
        self.database = database
        self.steps: list[Statement] = database.statements.of_mode(Mode.SCHEMA)
        self.wanted = max(number_of(step) for step in self.steps)
        self.making = [step for step in self.steps if made_by(step) is not None]
        """Those that make an index or a constraint."""

    def cypher(self, text: str, **params: Any) -> list[Row]:
        declared = ", ".join(f"{name}: str" for name in params)
        vars(self.database.statements)["_by_name"]["tests/prompt"] = parse_statement(
            "tests/prompt", None, HEADER.format(params=declared) + text
        )
        return self.service.run(self.database.autocommit("tests/prompt", **params))

    def state(self) -> dict[str, Any]:
        return dict(self.cypher("MATCH (s:SchemaState) RETURN properties(s) AS n")[0]["n"])

    def indexes(self) -> list[str]:
        return sorted(str(row["name"]) for row in self.service.run(self.database.autocommit("service/list_indexes")))

    def drop(self, *steps: Statement) -> None:
        for step in steps:
            made = made_by(step)
            if step.language is Language.SQL:
                if made is not None:
                    self.service.run(self.service.lastro.engine.sql(f"DROP INDEX `{made}` IF EXISTS"))
                continue
            assert made is not None
            self.cypher(f"DROP {'CONSTRAINT' if 'CONSTRAINT' in step.text else 'INDEX'} {made} IF EXISTS")

    def migrate(self) -> str:
        return self.service.run(migrate(self.database))

    def missing(self) -> list[str]:
        return self.service.run(missing_indexes(self.database))


@pytest.fixture
def replica(service: Service) -> Iterator[Replica]:
    database = service.run(connect(service.run(service.lastro.engine.start())))
    found = Replica(service, database)
    before = found.state()
    yield found
    found.cypher("MATCH (s:SchemaState) SET s.version = 0, s.holder = '', s.held_until_ms = 0 RETURN 1 AS n")
    found.migrate()
    found.cypher("MATCH (s:SchemaState) SET s.secret = $secret RETURN 1 AS n", secret=before["secret"])
    assert found.missing() == []
    service.run(database.close())


def test_four_replicas_on_an_empty_database_migrate_once(service: Service, replica: Replica, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "graph.schema")
    replica.drop(*reversed(replica.steps))
    replica.cypher("MATCH (s:SchemaState) DELETE s RETURN count(*) AS n")
    assert len(replica.missing()) == len(replica.making)

    async def at_once() -> list[str]:
        address = await service.lastro.engine.start()
        others = await asyncio.gather(*(connect(address) for _ in range(4)))
        try:
            return await asyncio.gather(*(migrate(other) for other in others))
        finally:
            await asyncio.gather(*(other.close() for other in others))

    secrets = service.run(at_once())
    assert len(set(secrets)) == 1, "one installation has one secret"
    assert re.fullmatch("[0-9a-f]{64}", secrets[0])
    assert replica.missing() == []
    state = replica.state()
    assert (state["version"], state["holder"], state["secret"]) == (replica.wanted, "", secrets[0])
    assert replica.cypher("MATCH (s:SchemaState) RETURN count(s) AS n") == [{"n": 1}]
    done = [record.getMessage() for record in caplog.records if record.getMessage().startswith("schema is at ")]
    assert done == [f"schema is at {step.name}" for step in replica.steps], "each step once, in order"


def test_a_second_start_changes_nothing(replica: Replica, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "graph.schema")
    before = replica.state(), replica.indexes()
    assert replica.migrate() == before[0]["secret"]
    assert (replica.state(), replica.indexes()) == before
    assert not caplog.records


def test_a_newer_schema_is_refused_and_left_alone(replica: Replica) -> None:
    replica.cypher("MATCH (s:SchemaState) SET s.version = 99 RETURN 1 AS n")
    before = replica.state(), replica.indexes()
    with pytest.raises(SchemaTooNew, match="version 99"):
        replica.migrate()
    assert (replica.state(), replica.indexes()) == before


def test_the_lease_of_a_holder_that_died_ends(replica: Replica) -> None:
    replica.drop(replica.steps[-1])
    until_ms = int((time.time() + 1.5) * 1000)
    replica.cypher(
        f"MATCH (s:SchemaState) SET s.version = {replica.wanted - 1}, s.holder = 'dead', s.held_until_ms = {until_ms} RETURN 1 AS n"
    )
    secret = replica.state()["secret"]
    assert replica.migrate() == secret
    assert time.time() * 1000 >= until_ms, "nobody works beside a holder that may live"
    assert replica.missing() == []
    state = replica.state()
    assert (state["version"], state["holder"]) == (replica.wanted, "")


def test_who_waits_goes_on_when_the_holder_is_done(service: Service, replica: Replica) -> None:
    far_ms = int((time.time() + 600) * 1000)
    replica.cypher(
        f"MATCH (s:SchemaState) SET s.version = {replica.wanted - 1}, s.holder = 'working', s.held_until_ms = {far_ms} RETURN 1 AS n"
    )
    waiting = asyncio.run_coroutine_threadsafe(migrate(replica.database), service.loop)
    time.sleep(3 * schema.POLL_S)
    assert not waiting.done()
    replica.cypher(f"MATCH (s:SchemaState) SET s.version = {replica.wanted} RETURN 1 AS n")
    assert waiting.result(timeout=20) == replica.state()["secret"]
    assert replica.state()["holder"] == "working", "the lease is another's"


def test_a_migration_that_broke_off_goes_on(replica: Replica) -> None:
    """Its holder died between making an index and writing that down."""
    replica.drop(*replica.steps[-3:])
    replica.cypher(f"MATCH (s:SchemaState) SET s.version = {number_of(replica.steps[-5])} RETURN 1 AS n")
    replica.migrate()
    assert replica.missing() == []
    assert replica.state()["version"] == replica.wanted


def test_a_dropped_index_is_found_missing_and_data_survives_its_return(service: Service, replica: Replica, tenant: str) -> None:
    with service.client(service.key(tenant), session="session-1") as client:
        stored(client, unit("a", task_id="t"))
        for step in replica.making:
            replica.drop(step)
            assert replica.missing() == [made_by(step)], step.name
            service.run(replica.database.autocommit(step.name, deadline_s=60))
        assert replica.missing() == []
        assert read(client, "a")["id"] == "a"
        for params in ({"task_id": "t"}, {"session_id": "session-1"}, {}):
            assert [item["id"] for item in client.get("/v1/units", params=params).json()["units"]] == ["a"]
