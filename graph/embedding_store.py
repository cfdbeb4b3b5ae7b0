"""Embeddings in the graph: which units wait for theirs, what is written, and which model they are of (S4, S10).

A unit waits by a property that is an order key, so a crash loses nothing and the oldest of all tenants are found by an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from graph import order_keys
from graph.connection import Database, WriteTransaction
from graph.model.errors import EngineFailure
from graph.model.vectors import EmbeddingLag, EmbeddingPhase, EmbeddingState
from graph.statements import Row
from graph.unit_rows import texts_of

MOST_COUNTED = 10_000
"""Units up to which the lag is counted."""
WRITE_DEADLINE_S = 20.0
FAR_FUTURE = "9"
"""Above every order key of a time: 18 digits begin with 0 until the year 3170."""


@dataclass(frozen=True, slots=True)
class DueUnit:
    """A unit that waits for its embedding."""

    tenant_id: str
    id: str
    due: str
    """Its order key. What is written for it is dropped when the unit no longer carries this one."""
    text: str
    """What is embedded: what it says, and the tool that it called."""
    tries: int
    """How often it could not be embedded."""


@dataclass(frozen=True, slots=True)
class Postponed:
    """A unit that was not embedded now."""

    unit: DueUnit
    code: str | None
    """Why; None for a unit without words, which is none that failed."""
    again_at: datetime | None
    """When it is tried again; None: not by itself."""


@dataclass(frozen=True, slots=True)
class Marked:
    """One step of telling units to wait."""

    looked_at: int
    marked: int
    state: EmbeddingState


class EmbeddingStore:
    """Reads what waits and writes what came of it, across tenants: for the job of the service, never for a caller."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due(self, limit: int) -> list[DueUnit]:
        """The units that have waited longest."""
        rows = await self._database.read("vectors/list_due_units", before_key=_now_key(), limit=limit)
        return [
            DueUnit(str(row["tenant_id"]), str(row["id"]), str(row["due"]), _text(row), int(row["tries"]))
            for row in rows
            # On the embedded engine, what an index gives may have been erased a moment ago.
            if row["content"] is not None
        ]

    async def lag(self, *, with_later: bool = False, most: int = MOST_COUNTED) -> EmbeddingLag:
        """How much waits, counted up to ``most``, and how long the first has; ``with_later``: also what is tried again at its time."""
        before_key = FAR_FUTURE if with_later else _now_key()
        row = (await self._database.read("vectors/count_due_units", before_key=before_key, most=most, deadline_s=WRITE_DEADLINE_S))[0]
        if not row["due"]:
            return EmbeddingLag(0, 0.0)
        since_us = order_keys.microseconds(datetime.now(UTC)) - int(str(row["oldest"]).split(" ", 1)[0])
        return EmbeddingLag(int(row["due"]), max(since_us / 1e6, 0.0))

    async def write(self, model: str, embedded: Sequence[tuple[DueUnit, list[float]]]) -> int:
        """Give units their embeddings, which are usable vectors (``graph.model.vectors.usable``): how many took theirs.

        One that was erased, changed or embedded meanwhile does not; nor does any once the graph is another model's.
        """
        rows = [{"tenant_id": unit.tenant_id, "id": unit.id, "due": unit.due, "embedding": vector} for unit, vector in embedded]

        async def work(transaction: WriteTransaction) -> int:
            written = await transaction.run("vectors/write_embeddings", model=model, rows=rows)
            return int(written[0]["written"]) if written else 0

        return await self._database.write("vectors/write_embeddings", work, deadline_s=WRITE_DEADLINE_S) if rows else 0

    async def postpone(self, postponed: Sequence[Postponed]) -> None:
        """Let units wait on, or no longer."""
        rows = [_postponed_row(item) for item in postponed]

        async def work(transaction: WriteTransaction) -> None:
            await transaction.run("vectors/postpone_embeddings", rows=rows)

        if rows:
            await self._database.write("vectors/postpone_embeddings", work, deadline_s=WRITE_DEADLINE_S)

    # --- the model ------------------------------------------------------------------------------------------------------------------

    async def state(self) -> EmbeddingState | None:
        """Which model the graph is of; None while there never was an embedder."""
        rows = await self._database.read("vectors/read_embedding_state")
        return _state(rows[0]) if rows else None

    async def begin(self, model: str, dimensions: int) -> EmbeddingState:
        """The state, made if there is none. Units that are there already have gaps then."""
        if (state := await self.state()) is not None:
            return state
        # Everything sorts after the empty key.
        found = (await self._database.read("vectors/find_unit", after_key=""))[0]["found"]
        phase = EmbeddingPhase.GAPS if found else EmbeddingPhase.COMPLETE

        async def work(transaction: WriteTransaction) -> EmbeddingState:
            rows = await transaction.run("vectors/create_embedding_state", model=model, dimensions=dimensions, phase=phase.value)
            return _state(rows[0])

        return await self._database.write("vectors/create_embedding_state", work)

    async def change(self, was: EmbeddingState, to: EmbeddingState) -> bool:
        """Put a state in the place of another; False when that is not the state any more."""

        async def work(transaction: WriteTransaction) -> bool:
            rows = await transaction.run(
                "vectors/change_embedding_state",
                was_model=was.model,
                was_phase=was.phase.value,
                model=to.model,
                dimensions=to.dimensions,
                phase=to.phase.value,
                marked_to=to.marked_to,
            )
            return bool(rows)

        return await self._database.write("vectors/change_embedding_state", work)

    async def mark(self, state: EmbeddingState, limit: int, *, anew: bool) -> Marked:
        """Tell the next ``limit`` units to wait: those without an embedding of the model, or ``anew`` all. The step survives a crash."""
        rows = await self._database.read("vectors/list_units_to_mark", after_key=state.marked_to, limit=limit, deadline_s=WRITE_DEADLINE_S)
        if not rows:
            return Marked(0, 0, state)
        chosen = [
            {
                "tenant_id": row["tenant_id"],
                "id": row["id"],
                "due": order_keys.due_order(int(row["recorded_us"]), str(row["tenant_id"]), str(row["id"])),
            }
            for row in rows
            if not row["waits"] and (anew or row["model"] != state.model)
        ]
        keys = [str(row["order_key"]) for row in rows]
        if keys not in (sorted(keys), sorted(keys, key=lambda key: key.encode("utf-16-be"))):
            # The embedded engine is not asked for an order that it has anyhow (decision 0012); without it units would be passed over.
            raise EngineFailure("The database gave units out of their order.")
        marked_to = keys[-1]

        async def work(transaction: WriteTransaction) -> bool:
            return bool(await transaction.run("vectors/mark_units_due", model=state.model, marked_to=marked_to, rows=chosen))

        await self._database.write("vectors/mark_units_due", work, deadline_s=WRITE_DEADLINE_S)
        return Marked(len(rows), len(chosen), EmbeddingState(state.model, state.dimensions, state.phase, marked_to))


def _now_key() -> str:
    return f"{order_keys.microseconds(datetime.now(UTC)) + 1:018d}"


def _text(row: Row) -> str:
    """What is embedded of a unit: what full text finds it by."""
    arguments = row["tool_arguments"]
    return "\n".join(
        filter(None, texts_of(str(row["content"]), row["tool_name"], None if arguments is None else orjson.loads(str(arguments))))
    )


def _postponed_row(item: Postponed) -> dict[str, object]:
    unit, again_at = item.unit, item.again_at
    next_due = None if again_at is None else order_keys.due_order(order_keys.microseconds(again_at), unit.tenant_id, unit.id)
    tries = None if item.code is None else unit.tries + 1
    return {"tenant_id": unit.tenant_id, "id": unit.id, "due": unit.due, "next_due": next_due, "code": item.code, "tries": tries}


def _state(row: Row) -> EmbeddingState:
    return EmbeddingState(str(row["model"]), int(row["dimensions"]), EmbeddingPhase(str(row["phase"])), str(row["marked_to"] or ""))
