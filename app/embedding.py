"""Embeddings beside the write path: the job that gives units theirs, the vector of a question, and whether search by meaning can be used (S4, S10).

A unit waits for its embedding by a mark in the graph, written with it. One replica at a time takes the oldest marks of all tenants, has the
model work in a thread, and writes what came of it; nothing raises a tenant's epoch, so answers in the cache live out their few seconds.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import monotonic

from adapters.embedders.base import Embedder
from app.embedder_thread import EmbedderHangs, EmbedderThread
from graph.embedding_store import DueUnit, EmbeddingStore, Postponed
from graph.lease_store import LeaseStore
from graph.model.errors import EmbedderUnavailable, EmbeddingFailed, LastroError
from graph.model.vectors import EmbeddingLag, EmbeddingPhase, EmbeddingState, usable
from graph.unit_rows import has_words
from graph.vector_index import VectorIndex

log = logging.getLogger(__name__)

LEASE = "embedding"
LEASE_S = 15.0
"""A replica that dies at work is followed by another after this. Should two be at work after all, the second's work is dropped."""
POLL_S = 0.5
"""How often a replica looks for units that others wrote; its own writes wake it at once."""
YIELDS_S = 5.0
"""How long the job lets writers go before it, where it yields."""
GATHER_S = 0.1
STATE_S = 5.0
"""How old what is known of the graph's model and of the lag may be."""
BATCH_UNITS = 32
BATCH_CHARACTERS = 60_000
"""Of one batch, after which the next units have to wait for the next one: about 2 s of the bundled model."""
STAMP = re.compile(r"\s*\[[^\[\]\n]{0,60}\d[^\[\]\n]{0,60}\]\s*(?=\S)")
"""A time in brackets that a text begins with. The unit has it as its timestamp, and in the vector it cost a point of recall."""
TEXT_CHARACTERS = 16_000
"""Of one unit; what is behind is not sent to a model, all of which cut shorter."""
EMBED_S = 30.0
"""For one batch. A thread that takes longer is given up."""
LOAD_S = 300.0
"""For loading a model, which may have to be fetched."""
QUERY_HANGS_S = 10.0
AGAIN_S = (10.0, 60.0, 600.0)
"""After how long a unit that could not be embedded is tried again, each time; then no more by itself."""
HANGS = "embedder_hangs"
"""Code of a unit at whose text the model did not come back."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 5.0
"""Between tries while the database is away."""
LONGEST_PAUSE_OF_MODEL_S = 60.0
"""The same while the model cannot be used at all."""


@dataclass(frozen=True, slots=True)
class SearchByMeaning:
    """Whether vectors can be asked for, and what a receipt says of it."""

    on: bool
    note: str | None = None
    """Why not, or what is missing; None when all is well."""


OTHER_MODEL = SearchByMeaning(
    on=False, note="Search by meaning is off: the embedding model was changed; `lastro reembed` makes new embeddings."
)
UNDER_WAY = SearchByMeaning(on=False, note="Search by meaning is off until `lastro reembed` has made all embeddings anew.")
BY_PHASE = {
    EmbeddingPhase.COMPLETE: SearchByMeaning(on=True),
    EmbeddingPhase.GAPS: SearchByMeaning(
        on=True, note="Some units were written without an embedder and are found by their words alone; `lastro reembed` mends that."
    ),
    EmbeddingPhase.MARKING: UNDER_WAY,
    EmbeddingPhase.EMBEDDING: UNDER_WAY,
}


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A question as a vector, or why there is none."""

    vector: tuple[float, ...] | None
    note: str | None = None


class Embedding:
    """The embedder of this service and what the graph holds of it. Without an embedder everything here says so and does nothing."""

    def __init__(
        self,
        embedder: Embedder | None,
        store: EmbeddingStore,
        index: VectorIndex,
        leases: LeaseStore,
        *,
        lease: str = LEASE,
        embed_s: float = EMBED_S,
        yields: bool = False,
    ) -> None:
        """``yields``: what the job writes waits while a batch of units is being written, for engines on which the quicker of two wins."""
        self._embedder = embedder
        self._store = store
        self._index = index
        self._leases = leases
        self._lease = lease
        self._embed_s = embed_s
        self._holder = secrets.token_hex(8)
        self._documents = EmbedderThread("embedding documents", embed_s)
        self._queries = EmbedderThread("embedding queries", QUERY_HANGS_S)
        self._opened: EmbeddingState | None = None
        self._read_at = -STATE_S
        self._held_until = 0.0
        self._loaded = False
        self._dimensions = 0
        self._turn = asyncio.Lock()
        self._loading: asyncio.Task[None] | None = None
        self._unmarked_noted = False
        self._index_made = False
        self._alone = 0
        """Units that are tried one by one, to find the one at which the model hangs."""
        self._woken = asyncio.Event()
        self._yields = yields
        self._writers = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._task: asyncio.Task[None] | None = None
        self.problem: str | None = None
        """Code of what keeps the job from its work now."""
        self.lag = EmbeddingLag(0, 0.0)
        """What waits, as last read by the job."""

    @property
    def model(self) -> str | None:
        """Name of the embedder; None without one."""
        return None if self._embedder is None else self._embedder.name

    @property
    def embeds(self) -> bool:
        """Whether units that are written now shall wait for an embedding."""
        return self._embedder is not None

    @property
    def state(self) -> str:
        """``off`` without an embedder or a job, ``running``, ``waiting`` when the model or the graph keeps it from its work, or ``stopped``
        when it died of a defect.
        """
        if self._embedder is None or self._task is None:
            return "off"
        if self._task.done():
            return "stopped"
        return "running" if self.problem is None else "waiting"

    # --- questions ------------------------------------------------------------------------------------------------------------------

    async def search_by_meaning(self) -> SearchByMeaning:
        """Whether vectors can be asked for now. Never raises: a graph that does not answer is told as a note."""
        if self._embedder is None:
            return SearchByMeaning(on=False, note="No embedder is set: only words were searched for.")
        try:
            # The job reads it every few seconds, so that no question has to.
            state = self._opened if self._task is not None else await self._fresh_state()
        except LastroError as error:
            return SearchByMeaning(on=False, note=f"Search by meaning is off: {error.message}")
        if state is None:
            return SearchByMeaning(on=False, note="Search by meaning is off: nothing has been embedded yet.")
        return OTHER_MODEL if state.model != self.model else BY_PHASE[state.phase]

    async def vector_of(self, question: str, timeout_s: float) -> QueryVector:
        """The question as a vector of length 1, within ``timeout_s`` seconds; or a note that says why there is none."""
        embedder = self._embedder
        if embedder is None:
            return QueryVector(None, "No embedder is set: only words were searched for.")
        if not self._loaded:
            # Nobody's question waits for seconds; the next one will find it loaded.
            self._load_behind()
            return QueryVector(None, "The embedding model is still being loaded: only words were searched for.")
        text = question[:TEXT_CHARACTERS]
        try:
            told = await self._queries.run(lambda: embedder.embed_query(text), timeout_s)
        except (EmbedderUnavailable, EmbeddingFailed) as error:
            return QueryVector(None, f"Only words were searched for. {error.message}")
        vector = usable(told, self._dimensions)
        if vector is None:
            return QueryVector(None, "The embedding model gave no usable vector: only words were searched for.")
        return QueryVector(tuple(vector))

    async def load(self) -> int:
        """Load the model and wait for it: its dimensions; 0 without one. Raises ``EmbedderUnavailable`` or ``EmbeddingFailed``."""
        embedder = self._embedder
        if embedder is None:
            return 0
        async with self._turn:
            if not self._loaded:
                began = monotonic()
                _, self._dimensions = await self._documents.run(lambda: (embedder.embed_query("."), embedder.dimensions), LOAD_S)
                self._loaded = True
                log.info("the embedding model is loaded after %.1f s", monotonic() - began)
        return self._dimensions

    def _load_behind(self) -> None:
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._load_quietly(), name="loading the embedding model")

    async def _load_quietly(self) -> None:
        try:
            await self.load()
        except (EmbedderUnavailable, EmbeddingFailed) as error:
            self.problem = error.code
            log.warning("the embedding model cannot be loaded: %s", error.code)

    # --- writers --------------------------------------------------------------------------------------------------------------------

    async def written(self) -> None:
        """Units were written: wakes the job, or, where no embedder is set, notes once that they will have no embedding."""
        if self._embedder is not None:
            self._woken.set()
        elif not self._unmarked_noted:
            self._unmarked_noted = True
            try:
                state = await self._store.state()
                if state is not None and state.phase is EmbeddingPhase.COMPLETE:
                    await self._store.change(state, replace(state, phase=EmbeddingPhase.GAPS))
            except LastroError as error:
                self._unmarked_noted = False
                log.info("that units have no embedding is noted later: %s", error.code)

    @contextmanager
    def writing(self) -> Generator[None]:
        """A batch of units is being written meanwhile."""
        self._writers += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._writers -= 1
            if not self._writers:
                self._quiet.set()

    async def _between_writers(self) -> None:
        """On the embedded engine whoever commits first wins, and a large batch lost to the job's small transactions until its time was up."""
        if self._yields and self._writers:
            with suppress(TimeoutError):
                async with asyncio.timeout(YIELDS_S):
                    await self._quiet.wait()

    # --- the job --------------------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self, when_ready: Callable[[], Awaitable[None]] | None = None) -> AsyncGenerator[None]:
        """Embed what waits, beside the block; ``when_ready`` is run once the model is loaded and the index is there."""
        if self._embedder is None:
            yield
            return
        self._task = asyncio.create_task(self._work(when_ready), name="embedding")
        self._task.add_done_callback(_tell_of_death)
        try:
            yield
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._let_go()

    async def aclose(self) -> None:
        """End its threads and what loads behind."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
        self._documents.close()
        self._queries.close()

    async def _work(self, when_ready: Callable[[], Awaitable[None]] | None) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                did = await self.once()
                if when_ready is not None and self._index_made:
                    await when_ready()
                    when_ready = None
            except LastroError as error:
                # The database or the model is away: what waits is in the graph and is found again.
                if self.problem is None:
                    log.warning("embedding waits: %s", error.code)
                self.problem = error.code
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_OF_MODEL_S if isinstance(error, EmbedderUnavailable) else LONGEST_PAUSE_S)
                continue
            pause_s = FIRST_PAUSE_S
            if not did:
                await self._rest()

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(POLL_S):
                await self._woken.wait()
        except TimeoutError:
            return
        # Who writes one unit writes another soon: fewer transactions, and fewer that meet those of the writers.
        await asyncio.sleep(GATHER_S)

    async def once(self) -> bool:
        """One batch, if there is one and this replica has the lease; whether it did anything.

        Raises:
            EmbedderUnavailable: nothing can be embedded now; what waits goes on waiting.
            DatabaseBusy, DatabaseUnavailable, DeadlineExceeded, EngineFailure: as above.
        """
        state = await self._ready_state()
        self._woken.clear()
        if state is None:
            return False
        waiting = await self._store.due(BATCH_UNITS)
        if not waiting:
            self.problem = None
            self.lag = EmbeddingLag(0, 0.0)
            if state.phase is EmbeddingPhase.EMBEDDING:
                await self._store.change(state, replace(state, phase=EmbeddingPhase.COMPLETE))
                self.forget_state()
            return False
        if not await self._has_lease():
            return False
        await self._embed(_batch(waiting) if not self._alone else waiting[:1])
        self.problem = None
        return True

    async def _ready_state(self) -> EmbeddingState | None:
        """The state when this replica may embed by it; the model is loaded and the index is there then."""
        if self._embedder is None:
            return None
        state = await self._fresh_state()
        if state is None:
            state = await self._store.begin(self._embedder.name, await self.load())
            await self._index.drop()  # one that is left over may be of other dimensions
            self.forget_state()
        if state.model != self.model or state.phase is EmbeddingPhase.MARKING:
            self.problem = "embedder_changed"
            return None
        if not self._index_made:
            await self._index.create(state.dimensions)
            self._index_made = True
        await self.load()
        return state

    async def _fresh_state(self) -> EmbeddingState | None:
        if monotonic() - self._read_at >= STATE_S:
            self._opened = await self._store.state()
            if self._task is not None:
                self.lag = await self._store.lag()
            self._read_at = monotonic()
        return self._opened

    def forget_state(self) -> None:
        """It was changed: read it again before it is needed."""
        self._read_at = -STATE_S

    async def _has_lease(self) -> bool:
        if monotonic() < self._held_until:
            return True
        if await self._leases.take(self._lease, self._holder, LEASE_S) is None:
            return False
        self._held_until = monotonic() + LEASE_S / 3
        return True

    async def _let_go(self) -> None:
        """Let another replica begin at once."""
        if monotonic() < self._held_until + LEASE_S:
            self._held_until = 0.0
            try:
                await self._leases.take(self._lease, self._holder, 0)
            except LastroError as error:
                log.info("the lease of the embedding job ends by itself: %s", error.code)

    async def _embed(self, batch: Sequence[DueUnit]) -> None:
        without_words = [Postponed(unit, None, None) for unit in batch if not has_words(unit.text)]
        await self._store.postpone(without_words)
        texts = [unit for unit in batch if has_words(unit.text)]
        if not texts:
            return
        try:
            vectors = await self._vectors(texts)
        except EmbedderHangs:
            if len(texts) > 1:
                self._alone = len(texts)
                return
            self._alone = 0
            await self._put_off(texts[0], HANGS)
            return
        except EmbeddingFailed:
            if len(texts) > 1:
                for unit in texts:
                    await self._embed([unit])
                return
            await self._put_off(texts[0], EmbeddingFailed.code)
            return
        self._alone = max(self._alone - len(texts), 0)
        embedded: list[tuple[DueUnit, list[float]]] = []
        for unit, told in zip(texts, vectors, strict=True):
            vector = usable(told, self._dimensions)
            if vector is None:
                await self._put_off(unit, "vector_unusable")
            else:
                embedded.append((unit, vector))
        assert self.model is not None
        await self._between_writers()
        await self._store.write(self.model, embedded)

    async def _vectors(self, units: Sequence[DueUnit]) -> list[list[float]]:
        embedder = self._embedder
        assert embedder is not None
        texts = [_to_embed(unit.text) for unit in units]
        vectors = await self._documents.run(lambda: embedder.embed_documents(texts), self._embed_s)
        if len(vectors) != len(texts):
            raise EmbeddingFailed("The embedding model gave another number of vectors than it was given texts.")
        return vectors

    async def _put_off(self, unit: DueUnit, code: str) -> None:
        pauses_s = AGAIN_S[:1] if code == HANGS else AGAIN_S  # each time takes a thread that may never come back
        again_at = datetime.now(UTC) + timedelta(seconds=pauses_s[unit.tries]) if unit.tries < len(pauses_s) else None
        log.warning("a unit could not be embedded (%s)%s", code, "" if again_at is not None else " and is not tried again by itself")
        await self._store.postpone([Postponed(unit, code, again_at)])


def _batch(waiting: Sequence[DueUnit]) -> list[DueUnit]:
    """The first of them whose texts together are no more than a batch; at least one."""
    chosen: list[DueUnit] = []
    characters = 0
    for unit in waiting:
        characters += min(len(unit.text), TEXT_CHARACTERS)
        if chosen and characters > BATCH_CHARACTERS:
            break
        chosen.append(unit)
    return chosen


def _tell_of_death(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (failure := task.exception()) is not None:
        # Its type and nothing of its text, which may hold content.
        log.error("the embedding job ended: %s", type(failure).__name__)


def _to_embed(text: str) -> str:
    """What of a unit's content goes to a model."""
    stamp = STAMP.match(text)
    return text[stamp.end() if stamp is not None else 0 :][:TEXT_CHARACTERS]
