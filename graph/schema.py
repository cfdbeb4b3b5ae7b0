"""Migrations: numbered statements of ``cypher/schema/``, run once, by one replica at a time."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from time import monotonic, time

from graph.connection import Database, WriteTransaction
from graph.model.errors import DatabaseBusy, DatabaseUnavailable, DeadlineExceeded, EngineFailure, SchemaTooNew
from graph.statements import Mode, Row, Statement

log = logging.getLogger(__name__)

LEASE_S = 60
"""A replica that dies while it migrates is followed by another after this."""
MIGRATION_DEADLINE_S = 300.0
STATEMENT_DEADLINE_S = 120.0
POLL_S = 0.25


async def migrate(database: Database) -> str:
    """Bring the schema to this version and return the installation's secret (64 hex characters).

    Safe to call by several replicas at once: the state node's uniqueness comes first, then a lease decides who works; the others wait.

    Raises:
        SchemaTooNew: a newer Lastro was here.
        DatabaseBusy: another replica held the lease for all of the deadline.
    """
    steps = database.statements.of_mode(Mode.SCHEMA)
    wanted = max(_number(step) for step in steps)
    await _run_patiently(database, steps[0])
    fresh_secret = secrets.token_hex(32)
    await _write(database, "service/create_schema_state", secret=fresh_secret)
    state = (await database.read("service/read_schema_state"))[0]
    if state["version"] > wanted:
        raise SchemaTooNew(f"The database has schema version {state['version']}; this Lastro knows {wanted}.")
    if state["version"] < wanted:
        await _migrate_under_lease(database, steps, wanted)
    return str(state["secret"])


async def _migrate_under_lease(database: Database, steps: list[Statement], wanted: int) -> None:
    holder = secrets.token_hex(8)
    ends = monotonic() + MIGRATION_DEADLINE_S
    while monotonic() < ends:
        now_ms = int(time() * 1000)
        granted = await _write(database, "service/take_schema_lease", holder=holder, now_ms=now_ms, until_ms=now_ms + LEASE_S * 1000)
        if granted:
            done = int(granted[0]["version"])
            for step in steps:
                if _number(step) > done:
                    await _run_patiently(database, step)
                    await _write(database, "service/record_schema_version", holder=holder, version=_number(step))
                    log.info("schema is at %s", step.name)
            await _write(database, "service/release_schema_lease", holder=holder)
            return
        await asyncio.sleep(POLL_S)
        if (await database.read("service/read_schema_state"))[0]["version"] >= wanted:
            return
    raise DatabaseBusy("Another replica has been migrating the schema for too long.", retry_after_s=LEASE_S)


async def _run_patiently(database: Database, step: Statement) -> None:
    """Concurrent IF NOT EXISTS can fail although both want the same; the second try then finds it done."""
    for attempt in range(4):
        try:
            await database.autocommit(step.name, deadline_s=STATEMENT_DEADLINE_S)
        except (EngineFailure, DatabaseBusy, DeadlineExceeded, DatabaseUnavailable):
            if attempt == 3:  # noqa: PLR2004 (the last of the four)
                raise
            await asyncio.sleep(POLL_S * (attempt + 1))
        else:
            return


async def _write(database: Database, name: str, **params: object) -> list[Row]:
    async def work(transaction: WriteTransaction) -> list[Row]:
        return await transaction.run(name, None, **params)

    return await database.write(name, work)


def _number(step: Statement) -> int:
    return int(step.name.rsplit("/", 1)[-1].split("_")[0])


async def missing_indexes(database: Database) -> list[str]:
    """Names of indexes and constraints that the migrations make and the database does not have."""
    rows = await database.autocommit("service/list_indexes")
    there = {str(row["name"]) for row in rows}
    wanted = [found for step in database.statements.of_mode(Mode.SCHEMA) if (found := _index_of(step.text)) is not None]
    return [name for name, labelled in wanted if name not in there and labelled not in there]


def _index_of(text: str) -> tuple[str, str] | None:
    """The name of what a schema statement makes, and the name that the embedded engine gives it: ``Label[property,property]``; None when it
    makes no index.
    """
    if (sql := SQL_INDEX.search(text)) is not None:
        name = f"{sql[1]}[{sql[2].replace(' ', '')}]"
        return name, name
    match = SCHEMA_STATEMENT.search(text)
    if match is None:
        return None
    properties = ",".join(PROPERTY.findall(match[3]))
    return match[1], f"{match[2]}[{properties}]"


SCHEMA_STATEMENT = re.compile(
    r"(?:INDEX|CONSTRAINT) (\w+) IF NOT EXISTS FOR \(\w+:(\w+)\) (?:ON EACH|ON|REQUIRE) (\([^)]*\)|\[[^\]]*\]|\S+)"
)
PROPERTY = re.compile(r"\w+\.(\w+)")
SQL_INDEX = re.compile(r"CREATE INDEX IF NOT EXISTS ON (\w+) \(([^)]*)\)")
