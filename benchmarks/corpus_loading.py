"""The made-up corpus in a tenant: the service's own statements by the raw driver, vectors among them.

The vectors are made up: that of a unit is the embedding of its topic's sentence by the bundled model, and noise, so that a unit and its
topic have a cosine of about 0.8, as near meanings have. They are written by the statement of the embedding job, and the index is made behind
them. Real embeddings of 100,000 units would take half an hour and search no slower.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic, perf_counter
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from adapters.base import unit_body
from adapters.embedders.base import embedder_of
from adapters.tokenizers import Tokenizers
from app.bootstrap import Lastro
from app.ingest import completed
from benchmarks.corpus import Run, Topic, runs
from benchmarks.measuring import OnProgress
from benchmarks.quality import Wrong
from benchmarks.raw import Raw, write_calls
from graph.model.scope import AuthorizedScope
from graph.model.units import ContextUnit
from graph.preparation import PreparedUnit
from graph.unit_rows import prepared_unit
from graph.vector_index import VectorIndex

EMBEDDER = "bundled"
NOISE = 0.75
"""Length of the noise beside a vector of length 1: a cosine of 1 / sqrt(1 + 0.75²) = 0.8 with it, 0.64 between two of one topic."""
VECTORS_AT_ONCE = 250
INDEX_S = 4 * 3600.0
LOOK_S = 1.0

Middles: TypeAlias = NDArray[np.float32]
"""A vector of length 1 for each topic, a row each."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """How long it took."""

    units: int
    writing_s: float
    vectors_s: float
    index_s: float


def middles(known: Sequence[Topic]) -> Middles:
    """The embedding of each topic's sentence, a row each."""
    embedder = embedder_of(EMBEDDER)
    assert embedder is not None
    return np.asarray(embedder.embed_documents([topic.sentence for topic in known]), dtype=np.float32)


async def has_model(lastro: Lastro) -> None:
    """Tell the graph its model while it is empty, as the first start of a service does; later, units would count as gaps."""
    embedder = embedder_of(EMBEDDER)
    assert embedder is not None
    await lastro.embeddings.begin(embedder.name, embedder.dimensions)


def load_corpus(
    raw: Raw, scope: AuthorizedScope, known: Sequence[Topic], around: Middles, units: int, *, first: int = 0, on_progress: OnProgress
) -> Loaded:
    """Units ``first`` to ``units`` in the scope's tenant, with edges, sessions, tasks, names and vectors; without the vector index."""
    tokenizers = Tokenizers()
    recorded_at = datetime.now(UTC) - timedelta(hours=1)
    chance = np.random.default_rng(first)
    writing_s = vectors_s = 0.0
    for run in runs(units, known, first=first):
        began = perf_counter()
        batch = [_prepared(unit, scope, tokenizers, recorded_at) for unit in run.units]
        raw.write(write_calls(raw, scope, batch))
        between = perf_counter()
        _write_vectors(raw, scope, run, batch, around, chance)
        writing_s += between - began
        vectors_s += perf_counter() - between
        on_progress(f"loading {scope.tenant_id}", (run.number + 1) * len(run.units) - first, units - first)
    return Loaded(units - first, writing_s, vectors_s, 0.0)


async def make_index(lastro: Lastro, on_progress: OnProgress) -> float:
    """Make the vector index and wait until it holds everything: seconds that took.

    Raises:
        Wrong: it did not within four hours.
    """
    index = VectorIndex(lastro.database)
    embedder = embedder_of(EMBEDDER)
    assert embedder is not None
    began = monotonic()
    on_progress("making the vector index", 0, 1)
    await index.create(embedder.dimensions)
    while not await index.online():
        if monotonic() - began > INDEX_S:
            raise Wrong("the vector index was not there in time")
        await asyncio.sleep(LOOK_S)
    on_progress("making the vector index", 1, 1)
    return monotonic() - began


def _prepared(unit: ContextUnit, scope: AuthorizedScope, tokenizers: Tokenizers, recorded_at: datetime) -> PreparedUnit:
    whole = completed(unit, scope)
    return prepared_unit(whole, scope.principal, tokenizers.count_o200k(unit_body(whole)), recorded_at, embeds=True)


def _write_vectors(
    raw: Raw, scope: AuthorizedScope, run: Run, batch: Sequence[PreparedUnit], around: Middles, chance: np.random.Generator
) -> None:
    embedder = embedder_of(EMBEDDER)
    assert embedder is not None
    noise = chance.standard_normal((len(batch), around.shape[1])).astype(np.float32)
    noise *= NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
    vectors = around[run.about] + noise
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = [
        {
            "tenant_id": scope.tenant_id,
            "id": item.unit.id,
            "due": cast("dict[str, object]", item.row["properties"])["embedding_due"],
            "embedding": vector,
        }
        for item, vector in zip(batch, vectors.tolist(), strict=True)
    ]
    for start in range(0, len(rows), VECTORS_AT_ONCE):
        part = rows[start : start + VECTORS_AT_ONCE]
        raw.write([raw.bound("vectors/write_embeddings", {"model": embedder.name, "rows": part})])
