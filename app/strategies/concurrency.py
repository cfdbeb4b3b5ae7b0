"""How many queries work at once, so that under load most are answered, some of them simply, and none too late.

All that a query needs after its caller is known runs in a place, of which there are a few: thirty at once would all be late. What cannot end in
time is not begun: it would take the time of what can. What a strategy takes is known from how long it took of late, under the load of late.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from time import monotonic

from graph.model.errors import DeadlineExceeded
from graph.model.query import StrategyName

LATEST = 0.2
"""What the latest run counts in the average of how long a strategy takes."""
FORGOTTEN_S = 10.0
"""After so many seconds without a run half of that average is forgotten, so that what was slow once is tried again under steady traffic too."""
WAIT_SHARE = 0.7
"""Of the time that a query has, what it may wait for a place. With 32 clients on two processors 0.5 answered a third fewer, 0.8 gave late ones
(docs/benchmarks.md).
"""
MOST_BY_ITSELF = 8
"""Places when no number is set; Python answers with one processor, however many there are."""


class NotBegun(Exception):
    """A strategy would not have ended in time."""


class Concurrency:
    """Places for queries. Tenants take turns, so that one with many waiting does not keep the others from theirs; within one the first is first."""

    def __init__(self, queries: int) -> None:
        """``queries``: places; 0 for one more than the machine has processors."""
        self._most = queries or min((os.cpu_count() or 1) + 1, MOST_BY_ITSELF)
        self._free = self._most
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Of each tenant, in the order in which tenants take turns."""
        self._takes: dict[StrategyName, tuple[float, float]] = {}
        """Seconds on average, and when it last ran."""

    @asynccontextmanager
    async def place(self, tenant_id: str, remaining_s: float) -> AsyncGenerator[None]:
        """A place for a query that has ``remaining_s`` seconds left.

        Raises:
            DeadlineExceeded: there was none in time.
        """
        if self._free:
            self._free -= 1
        else:
            await self._turn(tenant_id, remaining_s * WAIT_SHARE)
        try:
            yield
        finally:
            self._pass_on()

    @contextmanager
    def run(self, name: StrategyName, allowed_s: float, *, last: bool) -> Generator[None]:
        """A run of a strategy that may take ``allowed_s`` seconds; the ``last`` that could answer always begins.

        Raises:
            NotBegun: of late it takes longer.
        """
        # Whoever is alone takes nobody's time.
        if not last and self._most - self._free > 1 and self._expected_s(name) >= allowed_s:
            raise NotBegun
        began = monotonic()
        try:
            yield
        except DeadlineExceeded:
            self._note(name, monotonic() - began)
            raise
        self._note(name, monotonic() - began)

    async def _turn(self, tenant_id: str, wait_s: float) -> None:
        """Wait until a place is passed on to this one."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant_id, deque()).append(turn)
        try:
            async with asyncio.timeout(wait_s):
                await turn
        except BaseException as stopped:
            if turn.done() and not turn.cancelled():
                self._pass_on()  # it came in the very moment in which the waiting ended
            elif (queue := self._waiting.get(tenant_id)) is not None and turn in queue:
                queue.remove(turn)
                if not queue:
                    del self._waiting[tenant_id]
            if isinstance(stopped, TimeoutError):
                raise DeadlineExceeded from None
            raise

    def _pass_on(self) -> None:
        """The place to the first of the tenant whose turn it is, or to whoever comes."""
        while self._waiting:
            tenant_id = next(iter(self._waiting))
            queue = self._waiting.pop(tenant_id)
            turn = queue.popleft()
            if queue:
                self._waiting[tenant_id] = queue
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _expected_s(self, name: StrategyName) -> float:
        took_s, at = self._takes.get(name, (0.0, 0.0))
        return took_s * 0.5 ** ((monotonic() - at) / FORGOTTEN_S)

    def _note(self, name: StrategyName, took_s: float) -> None:
        known_s = self._expected_s(name) or took_s
        self._takes[name] = (known_s + LATEST * (took_s - known_s), monotonic())
