"""What is counted without a quota: kept in memory, written down every few seconds, so that a read costs no write (T4).

A replica writes its own totals of an hour, not what came on top: a write that is tried again changes nothing, and replicas do not wait for
each other. What a replica that was killed had counted in its last seconds is lost; limits do not depend on it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from graph.model.errors import LastroError
from graph.model.quota import Subject, subjects_of
from graph.model.scope import RESERVED_PREFIX, AuthorizedScope
from graph.quota_store import Counts, QuotaStore, hour_of

log = logging.getLogger(__name__)

FLUSH_S = 5.0
FLUSH_DEADLINE_S = 5.0
PART = 500
"""Subjects written in one transaction."""


@dataclass(slots=True)
class _Ledger:
    """What one tenant's callers did in one hour."""

    scope: AuthorizedScope
    totals: defaultdict[Subject, Counts] = field(default_factory=lambda: defaultdict[Subject, Counts](Counts))
    fresh: set[Subject] = field(default_factory=set[Subject])
    """Whose totals have grown since they were written down."""


class UsageMeter:
    """Counts what callers do, for each of the subjects they count for."""

    def __init__(self, store: QuotaStore) -> None:
        self._store = store
        self._replica = secrets.token_hex(4)
        self._ledgers: dict[tuple[str, int], _Ledger] = {}
        self._hour = 0
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    @property
    def state(self) -> str:
        """Whether what is counted is also written down: ``running``, ``stopped`` when the task died, or ``off``; told by /readyz."""
        if self._task is None:
            return "off"
        return "stopped" if self._task.done() else "running"

    def note(
        self,
        scope: AuthorizedScope,
        *,
        requests: int = 0,
        reads: int = 0,
        writes: int = 0,
        units_written: int = 0,
        tokens_read: int = 0,
        tokens_written: int = 0,
    ) -> None:
        """Count something that a caller did just now. Tokens in the unit they were counted in."""
        if scope.tenant_id.startswith(RESERVED_PREFIX):
            return
        # A clock that is set back must not begin an hour anew whose totals are written down already.
        self._hour = max(self._hour, hour_of(datetime.now(UTC)))
        ledger = self._ledgers.get((scope.tenant_id, self._hour))
        if ledger is None:
            ledger = self._ledgers[scope.tenant_id, self._hour] = _Ledger(scope)
        for subject in subjects_of(scope):
            counts = ledger.totals[subject]
            counts.requests += requests
            counts.reads += reads
            counts.writes += writes
            counts.units_written += units_written
            counts.tokens_read += tokens_read
            counts.tokens_written += tokens_written
            ledger.fresh.add(subject)

    async def flush(self, tenant_id: str | None = None, *, deadline_s: float = FLUSH_DEADLINE_S) -> None:
        """Write down what has grown, of one tenant or of all.

        Raises:
            DatabaseBusy, DatabaseUnavailable: some of it is not written; it is kept, and written the next time.
        """
        async with self._writing:
            for (owner, hour), ledger in list(self._ledgers.items()):
                if tenant_id is None or owner == tenant_id:
                    await self._write_down(ledger, hour, deadline_s)
                    if hour < self._hour and not ledger.fresh:
                        del self._ledgers[owner, hour]

    async def _write_down(self, ledger: _Ledger, hour: int, deadline_s: float) -> None:
        pending = sorted(ledger.fresh)
        for start in range(0, len(pending), PART):
            part = pending[start : start + PART]
            ledger.fresh.difference_update(part)
            try:
                await self._store.record(
                    ledger.scope, hour, self._replica, {subject: ledger.totals[subject] for subject in part}, deadline_s=deadline_s
                )
            except BaseException:
                # Also when the service is told to stop meanwhile: totals are written again by whoever flushes last.
                ledger.fresh.update(part)
                raise

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Write down every few seconds while the block runs, and once more at its end."""
        self._task = asyncio.create_task(self._flush_for_ever(), name="writing usage down")
        try:
            yield
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            try:
                await self.flush()
            except LastroError as error:
                log.warning("the last usage counts are lost: %s", error.code)

    async def _flush_for_ever(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            try:
                await self.flush()
            except LastroError as error:
                log.warning("usage is written down later: %s", error.code)
