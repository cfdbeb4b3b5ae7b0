"""Work beside the service: done again and again until the service ends. Only a defect ends it, and then health tells."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from graph.model.errors import LastroError

log = logging.getLogger(__name__)


class Background:
    """One kind of work, with a pause before each time."""

    def __init__(
        self, name: str, work: Callable[[], Awaitable[object]], every_s: float, *, at_end: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        """``work`` is done every ``every_s`` seconds; ``at_end`` once more when the service ends."""
        self._name = name
        self._do = work
        self._every_s = every_s
        self._at_end = at_end
        self._task: asyncio.Task[None] | None = None

    @property
    def state(self) -> str:
        """``running``, ``stopped`` when it died of a defect, or ``off`` where nothing runs beside, as in most commands; told by /readyz."""
        if self._task is None:
            return "off"
        return "stopped" if self._task.done() else "running"

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Do it around the block."""
        self._task = asyncio.create_task(self._for_ever(), name=self._name)
        self._task.add_done_callback(self._tell_of_death)
        try:
            yield
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            if self._at_end is not None:
                try:
                    await self._at_end()
                except LastroError as error:
                    log.warning("the last of %s is lost: %s", self._name, error.code)

    async def _for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            try:
                await self._do()
            except LastroError as error:
                # The database is away or busy: what was left is found again the next time.
                log.warning("%s waits: %s", self._name, error.code)

    def _tell_of_death(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            # Its type and nothing of its text, which may hold content.
            log.error("%s ended: %s", self._name, type(failure).__name__)
