"""What a query reads, recorded with what ran side by side, so that the raw driver can do exactly the same: in turn, or side by side too."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Self
from unittest.mock import patch

import neo4j
import orjson

from app.bootstrap import Lastro
from benchmarks.raw import Call, Raw
from graph.connection import Database
from graph.engines.base import Address
from graph.model.answer import ContextAnswer
from graph.model.base import parse
from graph.model.query import ContextQuery
from graph.model.scope import AuthorizedScope
from graph.statements import Row

Wave = list[list[Call]]
"""Chains of statements that ran side by side; those of one chain one after the other."""
WIDTH = 6
"""Chains that run side by side at the most."""


class Recording:
    """Sorts calls into waves: as long as anything runs, what begins beside it belongs to the same wave."""

    def __init__(self) -> None:
        self.waves: list[Wave] = []
        self._chains: dict[object, list[Call]] = {}
        self._running = 0

    def began(self, by: object, call: Call) -> None:
        """``by``: whoever waits for it; what one of them calls makes a chain."""
        if self._running == 0:
            self._chains = {}
            self.waves.append([])
        if by not in self._chains:
            self._chains[by] = []
            self.waves[-1].append(self._chains[by])
        self._chains[by].append(call)
        self._running += 1

    def ended(self) -> None:
        self._running -= 1


@contextmanager
def recorded_waves(database: Database) -> Generator[list[Wave]]:
    """What is read within the block, as bound."""
    recording = Recording()
    read = database.read

    async def noted(name: str, scope: AuthorizedScope | None = None, *, deadline_s: float = 60.0, **params: object) -> list[Row]:
        statement = database.statements[name]
        scoped = {key: value for key, value in scope.parameters.items() if key in statement.params} if scope is not None else {}
        recording.began(asyncio.current_task(), (name, statement.bind({**scoped, **params})))
        try:
            return await read(name, scope, deadline_s=deadline_s, **params)
        finally:
            recording.ended()

    with patch.object(database, "read", noted):
        yield recording.waves


async def asked_in_process(lastro: Lastro, scope: AuthorizedScope, query: dict[str, object]) -> tuple[ContextAnswer, list[Wave]]:
    """The answer as the service would give it, and what was read for it."""
    with recorded_waves(lastro.database) as waves:
        answer = await lastro.router.answer_within(parse(ContextQuery, orjson.dumps(query)), scope)
    return answer, waves


class Replay:
    """The raw driver with a session for each chain. Use it as a context manager."""

    def __init__(self, connected: neo4j.Driver, address: Address) -> None:
        self._raws = [Raw(connected, address) for _ in range(WIDTH)]
        self._threads = ThreadPoolExecutor(WIDTH, thread_name_prefix="raw")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        for raw in self._raws:
            raw.close()

    def in_turn(self, waves: Sequence[Wave]) -> None:
        """Every statement after the one before."""
        for wave in waves:
            for chain in wave:
                _run(self._raws[0], chain)

    def side_by_side(self, waves: Sequence[Wave]) -> None:
        """As the service did, whose statements partly ran at the same time."""
        for wave in waves:
            first, *others = wave
            # A driver's session belongs to one thread at a time: each chain has its own.
            beside = [self._threads.submit(_run, raw, chain) for raw, chain in zip(self._raws[1:], others, strict=False)]
            _run(self._raws[0], first)
            for chain in beside:
                chain.result()


def _run(raw: Raw, chain: Sequence[Call]) -> None:
    for call in chain:
        raw.read(call)
