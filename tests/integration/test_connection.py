"""The gateway to Bolt: deadlines, retries, scope and silence about values, on every engine."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from conftest import Service
from neo4j.exceptions import TransientError

from graph.connection import Database, ScopeMisused, StatementFailed, WriteTransaction, connect
from graph.model.erasure import TombstoneKeys
from graph.model.errors import DatabaseBusy, DatabaseUnavailable, DeadlineExceeded, EngineFailure
from graph.model.scope import AuthorizedScope
from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, Relation, WriteResult
from graph.preparation import Preparation
from graph.statements import Dialect, Row, Statement, Statements, load_all, parse_statement
from graph.unit_rows import prepared_unit
from graph.unit_store import UnitStore

HEADER = "// mode: {mode}\n// params: {params}\n// returns: n: int\n// scope: {scope}\n// For a test.\n"
SECRET = "do-not-repeat-7f3a"
SLACK_S = 1.5
"""Over a deadline, on a machine that does much else; on a quiet one it is 0.3 s."""


def statement(name: str, body: str, params: str = "", mode: str = "read", scope: str = "exempt: a statement of a test") -> Statement:
    return parse_statement(name, None, HEADER.format(mode=mode, params=params, scope=scope) + body)


EXTRA = [
    # About ten billion rounds, of which nothing is kept: no engine finishes them within a test.
    statement(
        "tests/hang",
        "UNWIND range(1, $rows) AS a UNWIND range(1, $rows) AS b WITH a * b AS c WHERE c = -1 RETURN count(c) AS n",
        "rows: int",
    ),
    statement(
        "tests/hang_in_write",
        "UNWIND range(1, $rows) AS a UNWIND range(1, $rows) AS b WITH a * b AS c WHERE c = -1 RETURN count(c) AS n",
        "rows: int",
        "write",
    ),
    statement("tests/count", "MATCH (p:Probe {tenant_id: $tenant_id}) RETURN count(p) AS n", "tenant_id: str", scope="tenant"),
    statement(
        "tests/add",
        "CREATE (p:Probe {tenant_id: $tenant_id, id: $id}) RETURN 1 AS n",
        "tenant_id: str, id: str",
        "write",
        "tenant",
    ),
    statement(
        "tests/break_a_key",
        "CREATE (s:SchemaState {id: 'lastro', note: $note}) RETURN 1 AS n",
        "note: str",
        "write",
    ),
    statement("tests/type_error", "RETURN date($value) AS n", "value: str"),
]


@pytest.fixture
def database(service: Service) -> Iterator[Database]:
    """A connection of the test's own to the service's database, with statements of the test's own."""
    address = service.run(service.lastro.engine.start())
    found = service.run(connect(address))
    found.statements = Statements(found.statements.dialect, [*load_all(), *EXTRA])
    yield found
    service.run(found.close())


@pytest.fixture
def scope(service: Service, tenant: str) -> AuthorizedScope:
    found = service.lastro.registry.local(tenant, "agent-1", session_id="session-1")
    service.run(service.lastro.registry.ensure_tenant(found))
    return found


async def running_of(database: Database, name: str) -> int:
    rows = await database.autocommit("service/list_transactions")
    return sum(f"lastro:{name} " in str(row["currentQuery"]) for row in rows)


async def until_none_runs(database: Database, name: str, within_s: float) -> None:
    ends = time.monotonic() + within_s
    while await running_of(database, name):
        assert time.monotonic() < ends, f"{name} still runs in the database"
        await asyncio.sleep(0.05)


def timed(service: Service, work: Coroutine[Any, Any, Any]) -> tuple[BaseException | None, float]:
    began = time.monotonic()
    try:
        service.run(work)
    except Exception as error:  # noqa: BLE001 (what it is, is what is tested)
        return error, time.monotonic() - began
    return None, time.monotonic() - began


def test_a_statement_that_hangs_ends_at_its_deadline(service: Service, database: Database) -> None:
    error, took = timed(service, database.read("tests/hang", deadline_s=0.5, rows=100_000))
    assert isinstance(error, DeadlineExceeded)
    assert 0.4 < took < 0.5 + SLACK_S
    if database.statements.dialect is Dialect.EMBEDDED:
        service.run(until_none_runs(database, "tests/hang", within_s=5))
    assert service.run(database.read("service/ping")) == [{"answer": 1}]


def test_a_write_that_hangs_ends_too_and_stores_nothing(service: Service, database: Database, scope: AuthorizedScope) -> None:
    async def work(transaction: WriteTransaction) -> None:
        await transaction.run("tests/add", scope, id="a")
        await transaction.run("tests/hang_in_write", rows=100_000)

    error, took = timed(service, database.write("tests/work", work, deadline_s=0.5))
    assert isinstance(error, DatabaseBusy)
    assert error.retry_after_s
    assert 0.4 < took < 0.5 + SLACK_S
    if database.statements.dialect is Dialect.EMBEDDED:
        service.run(until_none_runs(database, "tests/hang_in_write", within_s=5))
    assert service.run(database.read("tests/count", scope)) == [{"n": 0}]


def test_an_impatient_caller_does_not_end_the_statement_of_a_patient_one(service: Service, database: Database) -> None:
    """Both run the same statement; the engine's list of statements does not say who waits for which."""

    async def rounds_of_a_second() -> int:
        rows, took = 400, 0.0
        while took < 1:
            rows, began = rows * 3 // 2, time.monotonic()
            await database.read("tests/hang", deadline_s=60, rows=rows)
            took = time.monotonic() - began
        return rows

    async def both() -> list[Row]:
        rows = await rounds_of_a_second()
        patient = asyncio.create_task(database.read("tests/hang", deadline_s=60, rows=rows))
        for _ in range(3):
            await asyncio.sleep(0.1)
            with pytest.raises(DeadlineExceeded):
                await database.read("tests/hang", deadline_s=0.05, rows=100_000)
        assert not patient.done(), "the statement is too short for this test"
        return await patient

    assert service.run(both()) == [{"n": 0}]
    if database.statements.dialect is Dialect.EMBEDDED:
        service.run(until_none_runs(database, "tests/hang", within_s=5))


def test_nobody_watches_on_when_nothing_is_left(service: Service, database: Database) -> None:
    error, _ = timed(service, database.read("tests/hang", deadline_s=0.2, rows=100_000))
    assert isinstance(error, DeadlineExceeded)

    async def watchers_gone() -> None:
        async with asyncio.timeout(10):
            await asyncio.gather(*vars(database)["_watching"].values())

    service.run(watchers_gone())


def transient() -> TransientError:
    code = "Neo.TransientError.Transaction.DeadlockDetected"
    return cast("TransientError", TransientError._hydrate_neo4j(code=code, message=f"{SECRET} in a message"))  # type: ignore[attr-defined]


def test_work_that_is_tried_again_is_applied_once(service: Service, database: Database, scope: AuthorizedScope) -> None:
    tries: list[int] = []

    async def work(transaction: WriteTransaction) -> str:
        tries.append(len(tries))
        await transaction.run("tests/add", scope, id=f"try-{len(tries)}")
        if len(tries) < 3:
            raise transient()
        return "done"

    assert service.run(database.write("tests/work", work)) == "done"
    assert len(tries) == 3
    assert service.run(database.read("tests/count", scope)) == [{"n": 1}]


def test_work_that_is_tried_in_vain_is_busy_in_time(service: Service, database: Database, scope: AuthorizedScope) -> None:
    async def work(transaction: WriteTransaction) -> None:
        await transaction.run("tests/add", scope, id="a")
        raise transient()

    error, took = timed(service, database.write("tests/work", work, deadline_s=1))
    assert isinstance(error, DatabaseBusy)
    assert SECRET not in str(error)
    assert took < 1 + SLACK_S
    assert service.run(database.read("tests/count", scope)) == [{"n": 0}]


def test_what_the_work_raises_itself_rolls_back_and_comes_out(service: Service, database: Database, scope: AuthorizedScope) -> None:
    class Own(Exception):
        pass

    async def work(transaction: WriteTransaction) -> None:
        await transaction.run("tests/add", scope, id="a")
        raise Own

    error, _ = timed(service, database.write("tests/work", work))
    assert isinstance(error, Own)
    assert service.run(database.read("tests/count", scope)) == [{"n": 0}]


def unit(unit_id: str, *targets: str) -> ContextUnit:
    return ContextUnit(
        id=unit_id,
        kind=Kind.OBSERVATION,
        content=f"Fact {unit_id}.",
        metadata=Metadata(agent_id="agent-1", session_id="session-1", task_id="task-1"),
        relations=[Relation(target_id=target, edge_type=EdgeType.CAUSATION) for target in targets],
    )


async def written(store: UnitStore, scope: AuthorizedScope, *units: ContextUnit) -> WriteResult:
    async with Preparation(units, lambda one: prepared_unit(one, scope.principal, 5, datetime.now(UTC))) as batch:
        return await store.write(scope, batch)


def test_writers_of_one_tenant_all_succeed(service: Service, scope: AuthorizedScope) -> None:
    """The tenant, its task and its session are new: all of them meet at the same nodes."""
    store = UnitStore(service.lastro.database, TombstoneKeys(bytes(32)), service.lastro.quota_store)

    async def write(writer: int) -> int:
        units = [unit(f"w{writer}-0"), *(unit(f"w{writer}-{n}", f"w{writer}-{n - 1}") for n in range(1, 10))]
        return (await written(store, scope, *units)).written

    async def at_once() -> list[int]:
        return await asyncio.gather(*(write(writer) for writer in range(6)))

    assert service.run(at_once()) == [10] * 6
    page = service.run(store.page(scope, task_id="task-1", limit=100))
    assert len(page.units) == 60
    assert sum(len(unit.relations) for unit in page.units) == 54


def test_writers_of_the_same_units_store_them_once(service: Service, scope: AuthorizedScope) -> None:
    store = UnitStore(service.lastro.database, TombstoneKeys(bytes(32)), service.lastro.quota_store)

    async def write() -> tuple[int, int]:
        result = await written(store, scope, unit("a"), unit("b", "a"))
        return result.written, result.unchanged

    async def at_once() -> list[tuple[int, int]]:
        return await asyncio.gather(*(write() for _ in range(4)))

    assert sorted(service.run(at_once())) == [(0, 2), (0, 2), (0, 2), (2, 0)]
    assert [len(unit.relations) for unit in service.run(store.page(scope)).units] == [1, 0]


def test_first_keys_of_a_tenant_made_at_once(service: Service, tenant: str) -> None:
    found = service.lastro.registry.local(tenant, "operator")

    async def at_once() -> None:
        await asyncio.gather(*(service.lastro.registry.ensure_tenant(found) for _ in range(6)))

    service.run(at_once())


def test_a_tenants_statement_needs_a_scope(service: Service, database: Database) -> None:
    error, _ = timed(service, database.read("tests/count", None))
    assert isinstance(error, ScopeMisused)

    async def work(transaction: WriteTransaction) -> None:
        await transaction.run("tests/add", None, id="a")

    error, _ = timed(service, database.write("tests/work", work))
    assert isinstance(error, ScopeMisused)


@pytest.mark.parametrize("name", ["tenant_id", "sees"])
def test_what_the_scope_says_cannot_be_said_otherwise(service: Service, database: Database, scope: AuthorizedScope, name: str) -> None:
    said: dict[str, Any] = {name: ["other"]}
    error, _ = timed(service, database.read("units/read_units_by_id", scope, ids=["a"], as_of_us=1, **said))
    assert isinstance(error, ScopeMisused)

    async def work(transaction: WriteTransaction) -> None:
        await transaction.run("tests/add", scope, id="a", **said)

    error, _ = timed(service, database.write("tests/work", work))
    assert isinstance(error, ScopeMisused)


def test_only_a_read_runs_as_a_read(service: Service, database: Database) -> None:
    error, _ = timed(service, database.read("tests/hang_in_write", rows=1))
    assert isinstance(error, StatementFailed)


def test_every_tenants_statement_is_refused_without_a_scope(service: Service, database: Database) -> None:
    for item in database.statements:
        if item.tenant_scoped:
            params = {name: "x" for name in item.params if name not in {"tenant_id", "sees"}}

            async def work(transaction: WriteTransaction, name: str = item.name, params: dict[str, str] = params) -> None:
                await transaction.run(name, None, **params)

            error, _ = timed(service, database.write(item.name, work))
            assert isinstance(error, ScopeMisused), item.name


def test_errors_hold_no_values(service: Service, database: Database, caplog: pytest.LogCaptureFixture) -> None:
    """Texts of the database do: ``Node(1) already exists with label `SchemaState` and property `id` = 'lastro'``."""
    caplog.set_level(logging.DEBUG, "graph")

    async def work(transaction: WriteTransaction) -> None:
        await transaction.run("tests/break_a_key", note=SECRET)

    refused: list[BaseException] = []
    for attempt in (database.write("tests/work", work, deadline_s=3), database.read("tests/type_error", value=SECRET)):
        error, _ = timed(service, attempt)
        assert isinstance(error, StatementFailed | DatabaseBusy)
        refused.append(error)
    assert isinstance(refused[0], StatementFailed), "a real violation is said, not tried until the deadline"
    for error in refused:
        told = f"{error} {error!r} {error.__dict__} {error.__cause__} {error.__suppress_context__}"
        assert SECRET not in told
        assert "lastro'" not in told
        assert error.__suppress_context__, "no traceback shows what the driver said"
    assert SECRET not in caplog.text


def test_a_wrong_login_is_said_without_the_password(service: Service) -> None:
    address = service.run(service.lastro.engine.start())
    error, _ = timed(service, connect(replace(address, password=SECRET)))
    assert isinstance(error, EngineFailure)
    assert not isinstance(error, DatabaseUnavailable)
    assert SECRET not in f"{error} {error.hint} {replace(address, password=SECRET)!r}"


def test_nobody_there_is_said_in_time(service: Service) -> None:
    address = service.run(service.lastro.engine.start())
    error, took = timed(service, connect(replace(address, uri="bolt://127.0.0.1:9"), wait_s=1))
    assert isinstance(error, DatabaseUnavailable)
    assert error.retry_after_s
    assert took < 1 + 2 + SLACK_S
