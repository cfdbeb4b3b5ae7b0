"""Totals by tenant and hour: kept in memory, written down every few seconds, so that a request costs no write.

A replica writes its own totals of an hour, not what came on top: a write that is tried again changes nothing, and replicas do not wait for
each other. What a replica that was killed had counted in its last seconds is lost.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from graph.model.scope import AuthorizedScope
from graph.quota_store import hour_of

FLUSH_S = 5.0
FLUSH_DEADLINE_S = 5.0
PART = 500
"""Totals written in one transaction."""

Key = TypeVar("Key")
Counts = TypeVar("Counts")
HourKind = TypeVar("HourKind", bound="Hour[Any, Any]")


@dataclass(slots=True)
class Hour(Generic[Key, Counts]):
    """What is counted of one tenant in one hour."""

    scope: AuthorizedScope
    totals: dict[Key, Counts] = field(default_factory=dict["Key", "Counts"])
    fresh: set[Key] = field(default_factory=set["Key"])
    """Whose totals have grown since they were written down."""


class Recorder(Protocol):
    """Writes totals down; False when the tenant is gone, or going, and nothing was written."""

    async def __call__(self, scope: AuthorizedScope, hour: int, replica: str, totals: Mapping[Any, Any], *, deadline_s: float) -> bool: ...


class HourlyTotals(Generic[HourKind]):
    """The hours that are not written down whole."""

    def __init__(self, record: Recorder, make_hour: Callable[[AuthorizedScope], HourKind]) -> None:
        self._record = record
        self._make_hour = make_hour
        self._replica = secrets.token_hex(4)
        self._hours: dict[tuple[str, int], HourKind] = {}
        self._hour = 0
        self._writing = asyncio.Lock()

    @property
    def hours(self) -> list[HourKind]:
        """All that is in memory."""
        return list(self._hours.values())

    def now(self, scope: AuthorizedScope) -> HourKind:
        """The present hour of the scope's tenant, to be counted in."""
        # A clock that is set back must not begin an hour anew whose totals are written down already.
        self._hour = max(self._hour, hour_of(datetime.now(UTC)))
        hour = self._hours.get((scope.tenant_id, self._hour))
        if hour is None:
            hour = self._hours[scope.tenant_id, self._hour] = self._make_hour(scope)
        return hour

    async def flush(self, tenant_id: str | None = None, *, deadline_s: float = FLUSH_DEADLINE_S) -> None:
        """Write down what has grown, of one tenant or of all.

        Raises:
            DatabaseBusy, DatabaseUnavailable: some of it is not written; it is kept, and written the next time.
        """
        async with self._writing:
            for (owner, number), hour in list(self._hours.items()):
                if tenant_id is not None and owner != tenant_id:
                    continue
                known = await self._write_down(hour, number, deadline_s)
                if not known or (number < self._hour and not hour.fresh):
                    # What was counted for a tenant that is gone must not come back in one that takes its name.
                    self._hours.pop((owner, number), None)

    def forget(self, tenant_id: str) -> None:
        """The tenant was erased: what was counted for it, also what is written down already, must not come back in one that takes its name."""
        for owner, number in list(self._hours):
            if owner == tenant_id:
                del self._hours[owner, number]

    async def _write_down(self, hour: HourKind, number: int, deadline_s: float) -> bool:
        """Whether the tenant is still there."""
        pending = sorted(hour.fresh)
        for start in range(0, len(pending), PART):
            part = pending[start : start + PART]
            hour.fresh.difference_update(part)
            try:
                totals = {key: hour.totals[key] for key in part}
                if not await self._record(hour.scope, number, self._replica, totals, deadline_s=deadline_s):
                    return False
            except BaseException:
                # Also when the service is told to stop meanwhile: totals are written again by whoever flushes last.
                hour.fresh.update(part)
                raise
        return True
