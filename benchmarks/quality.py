"""What the benchmarks of quality share: the real service asked over HTTP, how tokens are counted there, and how answers are packed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from time import monotonic
from typing import Any

from adapters.embedders.base import NO_EMBEDDER
from app.bootstrap import Lastro
from benchmarks.engines import BenchEngine, lastro_on, started
from benchmarks.made_up import as_body
from benchmarks.measuring import OnProgress
from benchmarks.service import Door, ServiceFailed, on_address, serving
from graph.model.scope import Role
from graph.model.units import ContextUnit

DEFAULT_EMBEDDERS = ("bundled", NO_EMBEDDER)
WORD_TOKENS = 1.3
"""Tokens of a word, by the definition of these benchmarks alone (README of the data)."""
MANY_TOKENS = 16_000
"""A budget in o200k_base that holds 8,000 of the tokens above, with units to spare for those that do not fit."""
DEADLINE_MS = 60_000
"""Quality is asked for here, not speed: no query falls back."""
BATCH = 100
TRIES = 5
"""Of a batch that the service was too busy for, as its answer says."""
EMBED_S = 1_800.0
"""Until all units must have their embeddings."""
START_S = 120.0
LOOK_S = 0.2
ADMIN = "importer"


class Wrong(Exception):
    """Something that must hold did not: the benchmark ends, as its figures would mean nothing."""


def tokens(text: str) -> float:
    """Words x 1.3."""
    return len(text.split()) * WORD_TOKENS


def packed(units: Iterable[Mapping[str, Any]], budget: float) -> list[str]:
    """Ids of the units of an answer that fill a budget: in their order while they fit, without those that do not."""
    chosen: list[str] = []
    used = 0.0
    for unit in units:
        cost = tokens(unit["content"])
        if used + cost <= budget:
            used += cost
            chosen.append(str(unit["id"]))
    return chosen


def share(found: Collection[str], wanted: Collection[str]) -> float:
    """How many of the wanted are among the found, 0 to 1."""
    return len(set(wanted) & set(found)) / len(set(wanted))


def percent(values: Sequence[float]) -> float:
    """The mean of shares, in percent; 0 of none."""
    return 100 * sum(values) / len(values) if values else 0.0


class Asked:
    """A service with an embedder, or none, on a database of its own."""

    def __init__(self, lastro: Lastro, port: int, embedder: str) -> None:
        self.lastro = lastro
        self.port = port
        self.embedder = embedder

    @property
    def embeds(self) -> bool:
        return self.embedder != NO_EMBEDDER

    async def door(self, tenant: str, *, role: Role = Role.ADMIN, agent: str = ADMIN) -> Door:
        """A connection with a key of its own; an admin may write for any agent and sees the whole tenant."""
        scope = self.lastro.registry.local(tenant, "operator")
        key = await self.lastro.registry.create_key(scope, agent_id=agent, role=role)
        return Door(self.port, key.text)

    def write(self, door: Door, units: Sequence[ContextUnit], what: str, on_progress: OnProgress) -> None:
        """Store units in batches, each again when the service says that it was busy.

        Raises:
            ServiceFailed: it refused a batch, or was busy five times.
        """
        for start in range(0, len(units), BATCH):
            batch = units[start : start + BATCH]
            _post(door, as_body(batch))
            on_progress(what, start + len(batch), len(units))

    async def until_embedded(self, what: str, on_progress: OnProgress) -> None:
        """Wait until no unit waits for its embedding.

        Raises:
            Wrong: that took longer than half an hour.
        """
        if not self.embeds:
            return
        until = monotonic() + EMBED_S
        first = 0
        while (due := (await self.lastro.embeddings.lag(with_later=True)).due) > 0:
            first = max(first, due)
            on_progress(what, first - due, first)
            if monotonic() > until:
                raise Wrong(f"{due} units still have no embedding after {EMBED_S:.0f} s")
            await asyncio.sleep(LOOK_S)

    def ask(self, door: Door, topic: str, budget: int = MANY_TOKENS, **more: object) -> dict[str, Any]:
        """The answer about a topic, by the strategy that the service chooses.

        Raises:
            Wrong: it is not the answer that the service gives with time enough.
        """
        answer = door.context({"topic": topic, "budget_tokens": budget, "render": False, "deadline_ms": DEADLINE_MS, **more})
        receipt = answer["receipt"]
        if receipt["fallback"]:
            raise Wrong(f"{receipt['strategy']} answered as a fallback: {receipt['attempts']}")
        if self.embeds and receipt["search"]["vectors"] == "off":
            raise Wrong(f"vectors were not searched: {receipt['notes']}")
        return answer


def _post(door: Door, body: bytes) -> None:
    status, answer = door.asked("/v1/units", body)
    for _ in range(TRIES - 1):
        if status != HTTPStatus.SERVICE_UNAVAILABLE:
            break
        status, answer = door.asked("/v1/units", body)
    if status != HTTPStatus.CREATED:
        raise ServiceFailed(f"a batch was answered {status}: {answer[:400].decode('utf-8', 'replace')}")


@asynccontextmanager
async def asked(engine: BenchEngine, folder: Path, embedder: str) -> AsyncGenerator[Asked]:
    """A fresh database below ``folder`` and the service on it, ready to embed.

    Raises:
        ServiceFailed: it does not start, or has no embedder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    async with started(engine, folder) as address, lastro_on(address, folder, embedder=embedder) as lastro:
        with serving(folder, on_address(address) | {"LASTRO_EMBEDDER": embedder}) as served:
            found = Asked(lastro, served.port, embedder)
            await _until_it_can_embed(found)
            yield found


async def _until_it_can_embed(found: Asked) -> None:
    """Units that are written before the service knows its model would count as a gap, and each answer would say so."""
    if not found.embeds:
        return
    until = monotonic() + START_S
    door = await found.door("before")
    query = {"topic": "ready", "render": False, "deadline_ms": DEADLINE_MS}
    while door.context(query)["receipt"]["search"]["vectors"] == "off":
        if monotonic() > until:
            raise ServiceFailed(f"the service has no embedder after {START_S:.0f} s")
        await asyncio.sleep(LOOK_S)
    door.close()


def folder_for(folder: Path, embedder: str) -> Path:
    """A folder of its own for each embedder."""
    return folder / embedder.replace(":", "-").replace("/", "-")
