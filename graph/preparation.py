"""A batch on its way into the graph: prepared in parts, while the database takes the parts before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from anyio import to_thread

from graph.model.entities import Entities
from graph.model.units import ContextUnit

PART = 128
"""Units that are sent to the database at once: about 6 ms of work."""
SLICE = 16
"""Units that are prepared before others have their turn: under 1 ms."""
SHORT_PART = 262_144
"""Characters of a part up to which it is prepared between other work and not in a thread."""


@dataclass(frozen=True, slots=True)
class PreparedUnit:
    """A checked unit with what is computed once, at write."""

    unit: ContextUnit
    digest: str
    row: dict[str, object]
    """What ``units/create_units`` takes; see ``graph.unit_rows``."""
    content_tokens: int
    """What its body costs (o200k_base)."""
    entities: Entities
    """What it speaks of."""


class Preparation:
    """The units of a batch, and their prepared forms as they become ready. Use it as an asynchronous context manager."""

    def __init__(self, units: Sequence[ContextUnit], prepare: Callable[[ContextUnit], PreparedUnit]) -> None:
        self.units = units
        self.tokens_written = 0
        """Tokens of those that were new, once they are stored."""
        self._prepare = prepare
        self._parts: list[asyncio.Task[list[PreparedUnit]]] = []

    async def __aenter__(self) -> Self:
        for start in range(0, len(self.units), PART):
            before = self._parts[-1] if self._parts else None
            self._parts.append(asyncio.create_task(self._part(self.units[start : start + PART], before), name="preparing a batch"))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for part in self._parts:
            part.cancel()
        await asyncio.gather(*self._parts, return_exceptions=True)

    async def parts(self) -> AsyncIterator[list[PreparedUnit]]:
        """The batch in its order, part by part; again from the start each time it is asked for."""
        for part in self._parts:
            # Shielded: a write that is tried again asks for the same parts again.
            yield await asyncio.shield(part)

    async def whole(self) -> list[PreparedUnit]:
        """All of it."""
        return [item async for part in self.parts() for item in part]

    async def _part(self, units: Sequence[ContextUnit], before: asyncio.Task[list[PreparedUnit]] | None) -> list[PreparedUnit]:
        if before is not None:
            await asyncio.wait([before])
        if sum(len(unit.content) for unit in units) > SHORT_PART:
            return await to_thread.run_sync(lambda: [self._prepare(unit) for unit in units])
        # In slices between the database's answers: a second thread of Python's would make each of those wait for the interpreter's lock.
        prepared: list[PreparedUnit] = []
        for start in range(0, len(units), SLICE):
            prepared += [self._prepare(unit) for unit in units[start : start + SLICE]]
            await asyncio.sleep(0)
        return prepared
