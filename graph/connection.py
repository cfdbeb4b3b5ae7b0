"""The one gateway to Bolt: every statement of the system passes here.

It gives each a deadline by the service's own clock, retries by class of error, and turns what the driver raises into the errors of
``graph.model.errors``. Text of a driver's error never leaves: it can hold values.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, TypeVar

from neo4j import AsyncDriver, AsyncGraphDatabase, AsyncSession, AsyncTransaction, NotificationMinimumSeverity
from neo4j.exceptions import AuthError, ClientError, DriverError, Neo4jError, ServiceUnavailable, SessionExpired, TransientError

from graph.engines.base import Address
from graph.model.errors import DatabaseBusy, DatabaseUnavailable, DeadlineExceeded, EngineFailure
from graph.model.scope import AuthorizedScope
from graph.statements import Dialect, Mode, Row, Statement, Statements, dialect_of

__all__ = ["Database", "StatementFailed", "WriteTransaction", "connect"]

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

Result = TypeVar("Result")


class StatementFailed(EngineFailure):
    """The database refused a statement of ours: a defect, or a database that was changed by hand."""

    code = "statement_failed"
    message = "The database refused a statement."
    hint = "The service's log names the statement. `lastro doctor` checks that the schema is whole."


class WriteTransaction:
    """One explicit transaction, inside ``Database.write``."""

    def __init__(self, transaction: AsyncTransaction, statements: Statements) -> None:
        self._transaction = transaction
        self._statements = statements

    async def run(self, name: str, scope: AuthorizedScope | None = None, **params: object) -> list[Row]:
        """All rows of one statement of this transaction."""
        statement = self._statements[name]
        result = await self._transaction.run(statement.literal, statement.bind(_bound(statement, scope, params)))
        return [record.data() async for record in result]


def _bound(statement: Statement, scope: AuthorizedScope | None, params: dict[str, object]) -> dict[str, Any]:
    """The parameters with the scope's own; a scoped statement without a scope cannot be run at all."""
    if not statement.tenant_scoped:
        return params
    if scope is None:
        raise PermissionError("a tenant's statement was called without an authorised scope")
    if params.keys() & scope.parameters.keys():
        raise PermissionError("the scope's parameters come from the scope alone")
    return {**{name: value for name, value in scope.parameters.items() if name in statement.params}, **params}


class Database:
    """A connected database with the statements of its dialect."""

    def __init__(self, driver: AsyncDriver, address: Address, statements: Statements, agent: str) -> None:
        self._driver = driver
        self._address = address
        self.statements = statements
        self.agent = agent
        self._watching: set[asyncio.Task[None]] = set()

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

        async def once() -> list[Row]:
            async with self._session() as session:
                result = await session.run(statement.as_query(deadline_s + SERVER_TIMEOUT_MARGIN_S), bound)
                return [record.data() async for record in result]

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

        async def once() -> Result:
            async with self._session() as session:
                transaction = await session.begin_transaction(metadata={"statement": name}, timeout=deadline_s + SERVER_TIMEOUT_MARGIN_S)
                async with transaction:
                    result = await work(WriteTransaction(transaction, self.statements))
                    await transaction.commit()
                    return result

        try:
            return await self._within(name, deadline_s, once)
        except DeadlineExceeded:
            raise DatabaseBusy(retry_after_s=1) from None

    async def autocommit(self, name: str, *, deadline_s: float = READ_DEADLINE_S, **params: object) -> list[Row]:
        """All rows of a statement that must run outside a transaction of its own: administration and schema."""
        statement = self.statements[name]

        async def once() -> list[Row]:
            async with self._session() as session:
                result = await session.run(statement.as_query(None), params)
                return [record.data() async for record in result]

        return await self._within(name, deadline_s, once)

    async def close(self) -> None:
        """Close every connection; what still runs is told to stop."""
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        await self._driver.close()

    def _session(self) -> AsyncSession:
        return self._driver.session(  # pyright: ignore[reportUnknownMemberType] (the driver's own **config)
            database=self._address.database, fetch_size=BATCH_PER_FETCH
        )

    async def _within(self, name: str, deadline_s: float, once: Callable[[], Awaitable[Result]]) -> Result:
        ends = monotonic() + deadline_s
        pause = FIRST_PAUSE_S
        while True:
            try:
                async with asyncio.timeout(max(ends - monotonic(), 0.001)):
                    return await once()
            except TimeoutError:
                self._end_overdue(name, deadline_s)
                raise DeadlineExceeded from None
            except AuthError:
                raise EngineFailure("The database refused the login.", hint="Check LASTRO_NEO4J_USER and LASTRO_NEO4J_PASSWORD.") from None
            except (Neo4jError, DriverError, OSError) as failure:
                again = _retryable(failure)
                if not again:
                    raise self._translated(name, failure) from None
                if monotonic() + pause >= ends:
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

    def _end_overdue(self, name: str, deadline_s: float) -> None:
        """Neo4j ends a statement whose client went away; the embedded engine does not (reference: still there after 197 s)."""
        if self.statements.dialect is not Dialect.EMBEDDED:
            return
        task = asyncio.create_task(self._terminate_overdue(name, deadline_s), name=f"watchdog for {name}")
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)

    async def _terminate_overdue(self, name: str, deadline_s: float) -> None:
        try:
            # A write is named for what it does and may hang in any of its statements.
            marker = f"lastro:{name} " if name in self.statements else "lastro:"
            running = await self.autocommit("service/list_transactions")
            for row in running:
                if marker in str(row.get("currentQuery")) and _seconds(row.get("elapsedTime")) >= deadline_s * 0.9:
                    await self.autocommit("service/terminate_transaction", transaction_id=row["transactionId"])
                    log.warning("ended an overdue %s in the database", name)
        except (DatabaseUnavailable, DeadlineExceeded, DatabaseBusy, StatementFailed) as failure:
            # It ended by itself, or the engine is going down; its own command time-out is the last line.
            log.info("the watchdog could not end %s: %s", name, failure.code)


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
