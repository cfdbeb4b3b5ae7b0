"""The one gateway to Bolt: every statement of the system passes here.

It gives each a deadline by the service's own clock, retries by class of error, and turns what the driver raises into the errors of
``graph.model.errors``. Text of a driver's error never leaves: it can hold values.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

from neo4j import AsyncDriver, AsyncGraphDatabase, AsyncSession, AsyncTransaction, NotificationMinimumSeverity, Record
from neo4j.exceptions import (
    AuthError,
    ClientError,
    ConstraintError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
)

from graph.engines.base import Address
from graph.engines.sql import SqlDoor
from graph.model.errors import DatabaseBusy, DatabaseUnavailable, DeadlineExceeded, EngineFailure
from graph.model.scope import AuthorizedScope
from graph.statements import Dialect, Language, Mode, Row, Statement, Statements, dialect_of

__all__ = ["Database", "ScopeMisused", "StatementFailed", "WriteTransaction", "connect"]

log = logging.getLogger(__name__)

READ_DEADLINE_S = 5.0
"""For reads outside the context pipeline, which sets its own."""
WRITE_DEADLINE_S = 20.0
"""For one batch, queueing behind the tenant's other writers and retries included."""
CONNECT_DEADLINE_S = 2.0
SERVER_TIMEOUT_MARGIN_S = 1.0
"""The server's own time-out comes after ours: it is the second line (reference: it fires up to 1.5 s late)."""
FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5
BATCH_PER_FETCH = 2_000
MOST_COLLISIONS = 5
"""How often a write runs again after a unique key was found taken at commit; see ``_collided``."""
UNKNOWN = "Neo.DatabaseError.General.UnknownError"
WATCH_S = 35.0
"""How long the watchdog looks for an abandoned statement: the embedded engine's own time-out for a command is 30 s."""
WATCH_PAUSE_S = 0.1

Result = TypeVar("Result")


class StatementFailed(EngineFailure):
    """The database refused a statement of ours: a defect, or a database that was changed by hand."""

    code = "statement_failed"
    message = "The database refused a statement."
    hint = "The service's log names the statement. `lastro doctor` checks that the schema is whole."


class ScopeMisused(Exception):
    """A tenant's statement was called without a scope, or with parameters that only a scope may give: a defect of ours, never retried."""


@dataclass(slots=True, eq=False)
class _Call:
    """A call under way: what the watchdog must know to tell its statements from abandoned ones."""

    began: float = field(default_factory=monotonic)
    statements: set[str] = field(default_factory=set[str])
    current: str | None = None
    """The statement that may be running in the database, when it is one that the watchdog can find there."""

    def run(self, statement: Statement) -> None:
        self.current = statement.name if statement.mode in {Mode.READ, Mode.WRITE} else None
        self.statements.add(statement.name)


class WriteTransaction:
    """One explicit transaction, inside ``Database.write``."""

    def __init__(self, transaction: AsyncTransaction, statements: Statements, call: _Call) -> None:
        self._transaction = transaction
        self._statements = statements
        self._call = call

    async def run(self, name: str, scope: AuthorizedScope | None = None, **params: object) -> list[Row]:
        """All rows of one statement of this transaction."""
        statement = self._statements[name]
        self._call.run(statement)
        result = await self._transaction.run(statement.literal, statement.bind(_bound(statement, scope, params)))
        return [_row(record) async for record in result]


def _row(record: Record) -> Row:
    """A record as it is. Our statements return values, lists and maps, no nodes: the driver's ``data()`` would copy each value looking for
    some, which was over a quarter of the profile of reading units (docs/benchmarks.md).
    """
    return dict(zip(record.keys(), record.values(), strict=True))


def _bound(statement: Statement, scope: AuthorizedScope | None, params: dict[str, object]) -> dict[str, Any]:
    """The parameters with the scope's own; a scoped statement without a scope cannot be run at all."""
    if not statement.tenant_scoped:
        return params
    if scope is None:
        raise ScopeMisused("a tenant's statement was called without an authorised scope")
    if params.keys() & scope.parameters.keys():
        raise ScopeMisused("the scope's parameters come from the scope alone")
    return {**{name: value for name, value in scope.parameters.items() if name in statement.params}, **params}


class Database:
    """A connected database with the statements of its dialect."""

    def __init__(self, driver: AsyncDriver, address: Address, statements: Statements, agent: str) -> None:
        self._driver = driver
        self._address = address
        self.statements = statements
        self.agent = agent
        self._live: set[_Call] = set()
        self._abandoned: dict[str, float] = {}
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._sql = SqlDoor(address)

    async def read(
        self, name: str, scope: AuthorizedScope | None = None, *, deadline_s: float = READ_DEADLINE_S, **params: object
    ) -> list[Row]:
        """All rows of a read statement, in one round trip; tried again when another replica or a restart got in its way.

        Raises:
            DeadlineExceeded: ``deadline_s`` passed. The statement is also ended in the database.
            DatabaseUnavailable: the database does not answer.
            StatementFailed: it refused the statement.
        """
        statement = self.statements[name]
        if statement.mode is not Mode.READ:
            # The embedded engine commits a statement that runs by itself clause by clause, so a write needs a transaction to be whole.
            raise StatementFailed(f"`{name}` is no read.")
        bound = statement.bind(_bound(statement, scope, params))

        async def once(call: _Call) -> list[Row]:
            async with self._session() as session:
                call.run(statement)
                result = await session.run(statement.as_query(max(deadline_s, 0.0) + SERVER_TIMEOUT_MARGIN_S), bound)
                return [_row(record) async for record in result]

        return await self._within(name, deadline_s, once)

    async def write(
        self,
        name: str,
        work: Callable[[WriteTransaction], Awaitable[Result]],
        *,
        deadline_s: float = WRITE_DEADLINE_S,
    ) -> Result:
        """Run ``work`` in one transaction and commit it. ``work`` must be idempotent: it may run again, also when a commit's answer was lost.

        Raises:
            DatabaseBusy: others held the same data until the deadline. Running ``work`` again tells whether it was stored.
            DatabaseUnavailable: the database does not answer.
            StatementFailed: it refused a statement. Nothing was stored.
            whatever ``work`` raises, after a rollback.
        """

        async def once(call: _Call) -> Result:
            async with self._session() as session:
                transaction = await session.begin_transaction(metadata={"statement": name}, timeout=deadline_s + SERVER_TIMEOUT_MARGIN_S)
                async with transaction:
                    result = await work(WriteTransaction(transaction, self.statements, call))
                    await transaction.commit()
                    return result

        try:
            return await self._within(name, deadline_s, once)
        except DeadlineExceeded:
            raise DatabaseBusy(retry_after_s=1) from None

    async def autocommit(self, name: str, *, deadline_s: float = READ_DEADLINE_S, **params: object) -> list[Row]:
        """All rows of a statement that must run outside a transaction of its own: administration and schema."""
        statement = self.statements[name]
        if statement.language is Language.SQL:
            return await self._sql.run(statement.text, deadline_s, params)

        async def once(call: _Call) -> list[Row]:
            async with self._session() as session:
                call.run(statement)
                result = await session.run(statement.as_query(None), params)
                return [_row(record) async for record in result]

        return await self._within(name, deadline_s, once)

    async def close(self) -> None:
        """Close every connection; what still runs is told to stop."""
        for task in self._watching.values():
            task.cancel()
        await asyncio.gather(*self._watching.values(), return_exceptions=True)
        await self._sql.close()
        await self._driver.close()

    def _session(self) -> AsyncSession:
        return self._driver.session(  # pyright: ignore[reportUnknownMemberType] (the driver's own **config)
            database=self._address.database, fetch_size=BATCH_PER_FETCH
        )

    async def _within(self, name: str, deadline_s: float, once: Callable[[_Call], Awaitable[Result]]) -> Result:
        call = _Call()
        self._live.add(call)
        try:
            return await self._retried(name, deadline_s, call, once)
        finally:
            self._live.discard(call)

    async def _retried(self, name: str, deadline_s: float, call: _Call, once: Callable[[_Call], Awaitable[Result]]) -> Result:
        ends = call.began + deadline_s
        pause = FIRST_PAUSE_S
        collisions = 0
        while True:
            try:
                async with asyncio.timeout(max(ends - monotonic(), 0.001)):
                    return await once(call)
            except TimeoutError:
                self._abandon(call)
                raise DeadlineExceeded from None
            except AuthError:
                raise EngineFailure("The database refused the login.", hint="Check LASTRO_NEO4J_USER and LASTRO_NEO4J_PASSWORD.") from None
            except (Neo4jError, DriverError, OSError) as failure:
                collisions += _collided(failure)
                again = _retryable(failure) or (_collided(failure) and collisions <= MOST_COLLISIONS)
                if not again or monotonic() + pause >= ends:
                    raise self._translated(name, failure) from None
                log.info("retrying %s after %s", name, type(failure).__name__)
            # Full jitter: writers that collided once should not collide again at the same moment.
            await asyncio.sleep(random.uniform(pause / 2, pause))  # noqa: S311 (spreading retries, not a secret)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    def _translated(self, name: str, failure: Neo4jError | DriverError | OSError) -> Exception:
        if isinstance(failure, TransientError):
            return DatabaseBusy(retry_after_s=1)
        if isinstance(failure, ServiceUnavailable | SessionExpired | OSError) or _retryable(failure):
            return DatabaseUnavailable(retry_after_s=2)
        code = failure.code if isinstance(failure, Neo4jError) else type(failure).__name__
        if code in TIMED_OUT_IN_DATABASE:
            return DeadlineExceeded()
        log.error("statement %s was refused: %s", name, code)
        return StatementFailed(f"The database refused the statement `{name}`.")

    def _abandon(self, call: _Call) -> None:
        """Neo4j ends a statement whose client went away; the embedded engine does not (reference: still there after 197 s)."""
        name = call.current
        if name is None or self.statements.dialect is not Dialect.EMBEDDED:
            return
        self._abandoned[name] = monotonic()
        watching = self._watching.get(name)
        if watching is None or watching.done():
            self._watching[name] = asyncio.create_task(self._end_abandoned(name), name=f"watchdog for {name}")

    async def _end_abandoned(self, name: str) -> None:
        """End what runs of a statement in the database and belongs to no call that still waits.

        The engine lists a statement's text and age, not who waits for it. What began before the oldest waiting call of that statement is
        nobody's; what is younger may be another caller's, with more time, and is looked at again.
        """
        ends = monotonic() + WATCH_S
        while monotonic() < ends:
            await asyncio.sleep(WATCH_PAUSE_S)
            asked = monotonic()
            try:
                listed = await self.autocommit("service/list_transactions")
                running = [row for row in listed if f"lastro:{name} " in str(row.get("currentQuery"))]
                if not running and self._abandoned[name] < asked:
                    return
                oldest = min((call.began for call in self._live if name in call.statements), default=float("inf"))
                for row in running:
                    if monotonic() - _seconds(row.get("elapsedTime")) < oldest:
                        await self.autocommit("service/terminate_transaction", transaction_id=row["transactionId"])
                        log.warning("ended an abandoned %s in the database", name)
            except (DatabaseUnavailable, DeadlineExceeded, DatabaseBusy, StatementFailed) as failure:
                # It ended by itself, or the engine is going down or busy; its own command time-out is the last line.
                log.info("the watchdog could not look after %s: %s", name, failure.code)


TIMED_OUT_IN_DATABASE = frozenset(
    {
        "Neo.ClientError.Transaction.TransactionTimedOut",
        "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration",
        "Neo.ClientError.Transaction.Terminated",
    }
)


def _retryable(failure: Neo4jError | DriverError | OSError) -> bool:
    """Whether the same work can succeed a moment later: deadlocks, conflicts at commit, a lost connection, a leader that moved.

    A commit whose answer was lost counts too, since all our writes are idempotent.
    """
    if isinstance(failure, OSError):
        return True
    if isinstance(failure, Neo4jError) and not isinstance(failure, ClientError):
        return failure.is_retryable()
    if isinstance(failure, ClientError):
        return failure.is_retryable() and failure.code not in TIMED_OUT_IN_DATABASE
    return failure.is_retryable() or isinstance(failure, ServiceUnavailable | SessionExpired)


def _collided(failure: Neo4jError | DriverError | OSError) -> bool:
    """Whether another transaction made the same node first.

    The embedded engine lets two transactions merge the same new node and refuses the second at commit (seen with four replicas that
    migrate an empty database). Run again, the work finds the other's node, so a real violation is one that is met again and again. Under load
    it was also seen to refuse one of sixteen equal batches at commit with no better name than ``UnknownError``.
    """
    return isinstance(failure, ConstraintError) or (isinstance(failure, Neo4jError) and failure.code == UNKNOWN)


def _seconds(elapsed: object) -> float:
    """A duration as engines give it: a neo4j Duration, a number of ms, or an ISO text such as ``PT1.5S``."""
    if isinstance(elapsed, int | float):
        return float(elapsed) / 1000
    total = getattr(elapsed, "seconds", None)
    if total is not None:
        return float(total) + float(getattr(elapsed, "nanoseconds", 0)) / 1e9
    text = str(elapsed)
    return float(text[2:-1]) if text.startswith("PT") and text.endswith("S") and text[2:-1].replace(".", "").isdigit() else 0.0


async def connect(address: Address, *, wait_s: float = CONNECT_DEADLINE_S) -> Database:
    """Connect, ask the server what it is, and load the statements of its dialect.

    Raises:
        DatabaseUnavailable: nobody answered within ``wait_s`` seconds.
        EngineFailure: the login was refused.
    """
    driver = AsyncGraphDatabase.driver(  # pyright: ignore[reportUnknownMemberType] (as above)
        address.uri,
        auth=(address.user, address.password),
        connection_timeout=CONNECT_DEADLINE_S,
        connection_acquisition_timeout=CONNECT_DEADLINE_S,
        max_connection_pool_size=64,
        max_connection_lifetime=3_600,
        keep_alive=True,
        notifications_min_severity=NotificationMinimumSeverity.OFF,
        user_agent="lastro",
        telemetry_disabled=True,
    )
    ends = monotonic() + wait_s
    while True:
        try:
            async with asyncio.timeout(max(ends - monotonic(), CONNECT_DEADLINE_S)):
                info = await driver.get_server_info()  # pyright: ignore[reportUnknownMemberType] (as above)
            break
        except AuthError:
            await driver.close()
            raise EngineFailure("The database refused the login.", hint="Check LASTRO_NEO4J_USER and LASTRO_NEO4J_PASSWORD.") from None
        except (Neo4jError, DriverError, OSError, TimeoutError):
            if monotonic() >= ends:
                await driver.close()
                raise DatabaseUnavailable(retry_after_s=2) from None
            await asyncio.sleep(0.3)
    return Database(driver, address, Statements(dialect_of(info.agent)), info.agent)
