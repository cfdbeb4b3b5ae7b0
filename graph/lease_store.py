"""Leases in the graph: one replica at a time does the work of a background job."""

from __future__ import annotations

from datetime import UTC, datetime
from time import time

from graph.connection import Database, WriteTransaction
from graph.statements import Row


class LeaseStore:
    """Takes and renews leases by the name of their job."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, name: str, holder: str, hold_s: float) -> datetime | None:
        """Take or renew a job's lease for so long: when the job was last through (now for one that never ran), or None when another holds it."""
        now_ms = int(time() * 1000)

        async def work(transaction: WriteTransaction) -> list[Row]:
            until_ms = now_ms + int(hold_s * 1000)
            return await transaction.run("service/take_lease", job=name, holder=holder, now_ms=now_ms, until_ms=until_ms)

        rows = await self._database.write("service/take_lease", work)
        return datetime.fromtimestamp(int(rows[0]["done_ms"]) / 1000, UTC) if rows else None

    async def note_done(self, name: str, holder: str) -> None:
        """The job is through for now."""
        done_ms = int(time() * 1000)

        async def work(transaction: WriteTransaction) -> None:
            await transaction.run("service/note_lease_done", job=name, holder=holder, done_ms=done_ms)

        await self._database.write("service/note_lease_done", work)
