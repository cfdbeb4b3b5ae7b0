"""Any model of the sentence-transformers library (extra ``sentence-transformers``; some 5 GB with what it needs)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Final, Protocol, cast

from graph.model.errors import EmbedderNotInstalled, EmbedderUnavailable

MOST_CHARACTERS: Final = 8_000
"""Of one text. The model cuts it further, to its own length."""


class SentenceTransformersEmbedder:
    """A model by its name or folder, on the processor or card that the library chooses."""

    def __init__(self, model: str) -> None:
        self._model_name = model
        self._loading = Lock()

    @property
    def name(self) -> str:
        return f"sentence-transformers:{self._model_name}"

    @property
    def dimensions(self) -> int:
        told = self._loaded().get_sentence_embedding_dimension()
        return len(self.embed_query(".")) if told is None else told

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return self._encoded("encode_document", [text[:MOST_CHARACTERS] for text in texts])

    def embed_query(self, text: str) -> list[float]:
        return self._encoded("encode_query", [text[:MOST_CHARACTERS]])[0]

    def _encoded(self, how: str, texts: list[str]) -> list[list[float]]:
        model = self._loaded()
        # Newer versions know how a model wants its questions and its documents; before, there was one way for both.
        encode = getattr(model, how, model.encode)
        return cast("list[list[float]]", encode(texts, show_progress_bar=False).tolist())

    def _loaded(self) -> _Model:
        with self._loading:
            return self._model

    @cached_property
    def _model(self) -> _Model:
        try:
            library: Any = importlib.import_module("sentence_transformers")
        except ImportError:
            raise EmbedderNotInstalled(
                "The embedder sentence-transformers is not installed.",
                hint="Install it: pip install 'lastro[sentence-transformers]', or set LASTRO_EMBEDDER=bundled.",
            ) from None
        try:
            return cast("_Model", library.SentenceTransformer(self._model_name))
        except (OSError, ValueError):
            # Not there, or it would have to be fetched and cannot be.
            raise EmbedderUnavailable(
                "The model of sentence-transformers cannot be loaded.", hint="Check the model's name or folder in LASTRO_EMBEDDER."
            ) from None


class _Model(Protocol):
    def get_sentence_embedding_dimension(self) -> int | None: ...

    def encode(self, texts: list[str], *, show_progress_bar: bool) -> Any: ...
