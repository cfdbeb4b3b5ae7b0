"""OpenAI's embedding models, or those of any server that speaks the same protocol (extra ``openai``).

Key and address are the library's own variables, ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``. What units say is sent there.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Final

from graph.model.errors import EmbedderNotInstalled, EmbedderUnavailable, EmbeddingFailed

MOST_CHARACTERS: Final = 8_000
"""Of one text. The models take 8,191 tokens, and a character is at most one or two of them where it is a rare one."""
TIMEOUT_S: Final = 20.0
KNOWN: Final = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
"""Dimensions of OpenAI's own models; another is asked for one vector."""


class OpenAiEmbedder:
    """A model by its name."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._loading = Lock()
        self._dimensions = KNOWN.get(model)

    @property
    def name(self) -> str:
        return f"openai:{self._model}"

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self._dimensions = len(self.embed_query("."))
        return self._dimensions

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        with self._loading:
            client, library = self._client
        try:
            answer = client.embeddings.create(model=self._model, input=[text[:MOST_CHARACTERS] for text in texts], encoding_format="float")
        except (library.BadRequestError, library.UnprocessableEntityError):
            raise EmbeddingFailed("The embedding service refused a text.") from None
        except (library.AuthenticationError, library.PermissionDeniedError, library.NotFoundError):
            raise EmbedderUnavailable(
                "The embedding service does not know the key or the model.",
                hint="Check OPENAI_API_KEY, OPENAI_BASE_URL and LASTRO_EMBEDDER.",
            ) from None
        except library.OpenAIError:
            raise EmbedderUnavailable("The embedding service does not answer.", hint="It is asked again by itself.") from None
        by_place = sorted(answer.data, key=lambda item: item.index)
        if len(by_place) != len(texts):
            raise EmbeddingFailed("The embedding service left out a text.")
        return [list(item.embedding) for item in by_place]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    @cached_property
    def _client(self) -> tuple[Any, Any]:
        try:
            library: Any = importlib.import_module("openai")
        except ImportError:
            raise EmbedderNotInstalled(
                "The embedder openai is not installed.", hint="Install it: pip install 'lastro[openai]', or set LASTRO_EMBEDDER=bundled."
            ) from None
        try:
            # Asked again by the job, which knows better when.
            return library.OpenAI(timeout=TIMEOUT_S, max_retries=0), library
        except library.OpenAIError:
            raise EmbedderUnavailable("The key for the embedding service is missing.", hint="Set OPENAI_API_KEY.") from None
