"""How many queries work at once, so that under load most are answered, some of them simply, and none too late.

All that a query needs after its caller is known runs in a place, of which there are a few: thirty at once would all be late. What cannot end in
time is not begun: it would take the time of what can. What a strategy takes is known from how long it took of late, under the load of late.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import monotonic

from graph.model.errors import DeadlineExceeded
from graph.model.query import StrategyName

LATEST = 0.2
"""What the latest run counts in the average of how long a strategy takes."""
WAIT_SHARE = 0.7
"""Of the time that a query has, what it may wait for a place. With 32 clients on two processors 0.5 answered a third fewer, 0.8 gave late ones
(docs/benchmarks.md).
"""
MOST_BY_ITSELF = 8
"""Places when no number is set; Python answers with one processor, however many there are."""
SEARCHES = frozenset({StrategyName.HYBRID, StrategyName.RETRIEVAL})
"""Strategies that compare hundreds of units. What stands in for them does not."""


class NotBegun(Exception):
    """A strategy would not have ended in time."""


class Concurrency:
    """Places for queries and, of these, for searches."""

    def __init__(self, queries: int, searches: int) -> None:
        """``queries``: places; 0 for one more than the machine has processors. ``searches``: of these; 0 for a third."""
        queries = queries or min((os.cpu_count() or 1) + 1, MOST_BY_ITSELF)
        searches = searches or max(queries // 3, 1)
        self._places = asyncio.Semaphore(queries)
        self._searches = asyncio.Semaphore(searches)
        self._working = 0
        self._takes_s: dict[StrategyName, float] = {}

    @asynccontextmanager
    async def place(self, remaining_s: float) -> AsyncGenerator[None]:
        """A place for a query that has ``remaining_s`` seconds left. Places are given in the order of arrival.

        Raises:
            DeadlineExceeded: there was none in time.
        """
        try:
            async with asyncio.timeout(remaining_s * WAIT_SHARE):
                await self._places.acquire()
        except TimeoutError:
            raise DeadlineExceeded from None
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1
            self._places.release()

    @asynccontextmanager
    async def run(self, name: StrategyName, allowed_s: float, *, last: bool) -> AsyncGenerator[None]:
        """A run of a strategy that may take ``allowed_s`` seconds, the wait for others included; the ``last`` that could answer always begins.

        Raises:
            NotBegun: it would not end in time, as it goes of late.
        """
        spare_s = allowed_s - self._takes_s.get(name, 0.0)
        # Whoever is alone always tries, or an average that was bad once would never be corrected.
        if spare_s <= 0 and not last and self._working > 1:
            raise NotBegun
        is_search = name in SEARCHES
        if is_search:
            try:
                async with asyncio.timeout(allowed_s if last else max(spare_s, 0.0)):
                    await self._searches.acquire()
            except TimeoutError:
                raise NotBegun from None
        began = monotonic()
        try:
            yield
        finally:
            if is_search:
                self._searches.release()
            took = monotonic() - began
            known = self._takes_s.get(name, took)
            self._takes_s[name] = known + LATEST * (took - known)
