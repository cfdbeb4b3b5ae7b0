"""Embeddings of another model, for the whole graph: what `lastro reembed` does. Killed at any point, it goes on where it was."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from app.embedding import POLL_S, Embedding
from graph.embedding_store import EmbeddingStore
from graph.lease_store import LeaseStore
from graph.model.errors import CommandRefused, Conflict
from graph.model.vectors import EmbeddingPhase, EmbeddingState
from graph.vector_index import VectorIndex

LEASE = "reembedding"
LEASE_S = 60.0
MARKED_AT_ONCE = 500
MOST_COUNTED = 100_000_000

Step = Literal["marking", "embedding"]
OnProgress = Callable[[Step, int, int | None], None]
"""Told the step, how many units are done, and of how many, where that is known."""


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """What a run did."""

    model: str
    dimensions: int
    resumed: bool
    """Whether an earlier run had broken off."""
    looked_at: int
    marked: int
    """Units that were told to wait for a new embedding, by this run."""
    embedded: int
    """Units that waited when embedding began and do no longer."""
    put_off: int
    """Units that could not be embedded; they are tried again by the service."""


class Reembedding:
    """Makes the embeddings of the graph those of the embedder that is set."""

    def __init__(self, embedding: Embedding, store: EmbeddingStore, index: VectorIndex, leases: LeaseStore) -> None:
        self._embedding = embedding
        self._store = store
        self._index = index
        self._leases = leases
        self._holder = secrets.token_hex(8)

    async def run(self, *, anew: bool, on_progress: OnProgress) -> ReembedReport:
        """Embed what has no embedding of the embedder that is set, or ``anew`` everything.

        Raises:
            CommandRefused: no embedder is set.
            Conflict: another run is at work.
            EmbedderUnavailable, DatabaseBusy, DatabaseUnavailable: it broke off; the next run goes on.
        """
        model = self._embedding.model
        if model is None:
            raise CommandRefused("No embedder is set.", hint="Set LASTRO_EMBEDDER, for example to bundled.")
        await self._keep_lease()
        dimensions = await self._embedding.load()
        was = await self._store.begin(model, dimensions)
        state = was
        resumed = was.model == model and (was.phase in {EmbeddingPhase.MARKING, EmbeddingPhase.EMBEDDING} or bool(was.marked_to))
        changes = was.model != model or was.dimensions != dimensions or (anew and not resumed)
        if changes:
            state = await self._changed(was, EmbeddingState(model, dimensions, EmbeddingPhase.MARKING))
        looked_at = marked = 0
        if state.phase is not EmbeddingPhase.EMBEDDING:
            if state.phase is EmbeddingPhase.MARKING:
                # The embedded engine takes no vector of other dimensions while the old index is there.
                await self._index.drop()
            while (step := await self._store.mark(state, MARKED_AT_ONCE, anew=anew or state.phase is EmbeddingPhase.MARKING)).looked_at:
                state = step.state
                looked_at, marked = looked_at + step.looked_at, marked + step.marked
                on_progress("marking", looked_at, None)
                await self._keep_lease()
            state = await self._changed(state, replace(state, phase=_after_marking(state.phase), marked_to=""))
        embedded = await self._embed(on_progress)
        if state.phase is EmbeddingPhase.GAPS:
            await self._changed(state, replace(state, phase=EmbeddingPhase.COMPLETE))
        put_off = await self._store.lag(with_later=True, most=MOST_COUNTED)
        await self._leases.take(LEASE, self._holder, 0)
        return ReembedReport(model, dimensions, resumed, looked_at, marked, embedded, put_off.due)

    async def _embed(self, on_progress: OnProgress) -> int:
        total = (await self._store.lag(most=MOST_COUNTED)).due
        due = total
        on_progress("embedding", 0, total)
        while due:
            # Where a service runs on the same graph, one of the two has the lease of the job and the other looks on.
            if not await self._embedding.once():
                await asyncio.sleep(POLL_S)
            due = (await self._store.lag(most=MOST_COUNTED)).due
            on_progress("embedding", max(total - due, 0), total)
            await self._keep_lease()
        await self._embedding.once()  # writes down that all is done
        return total

    async def _changed(self, was: EmbeddingState, to: EmbeddingState) -> EmbeddingState:
        if to != was and not await self._store.change(was, to):
            raise Conflict("The state of the embeddings was changed by another process.", hint="Run the command again.")
        self._embedding.forget_state()
        return to

    async def _keep_lease(self) -> None:
        if await self._leases.take(LEASE, self._holder, LEASE_S) is None:
            raise Conflict("Another `lastro reembed` is at work.", hint="Wait for it; one that was killed counts for a minute.")


def _after_marking(phase: EmbeddingPhase) -> EmbeddingPhase:
    return EmbeddingPhase.EMBEDDING if phase is EmbeddingPhase.MARKING else EmbeddingPhase.GAPS
