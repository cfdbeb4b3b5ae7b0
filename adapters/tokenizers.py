"""Counting tokens offline. Loaded when first asked for, once a process, by whichever thread comes first; never over the network.

tiktoken's own constructors say the pattern, the special tokens, the address and the SHA-256 of an encoding's ranks. They are run with our
loader in place of the one that downloads, so nothing global is changed and a new tiktoken is followed. Without ranks, tokens are estimated.

o200k_base, in which every unit is counted at write and every payload at read, is encoded by quicktok's engine when it is there and agrees
with tiktoken on the probes below: the same ids in a fifth of the time, and no panic on a million spaces (tiktoken 0.14 has one).
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol, cast

from adapters import packaged_tokenizers, ranks
from adapters.counter import Counter, Tally, exact_tally
from adapters.fence import well_formed
from graph.model.answer import CountMethod

if TYPE_CHECKING:
    import tiktoken

O200K = "o200k_base"

# The estimate, from a few texts counted with o200k_base: 4.3 to 5.9 bytes a token for English, Portuguese and Chinese prose, 4.0 for Python,
# 2.0 for JSON full of ids and numbers, 1.5 for base64. The value is a judgement between them. A token is at least one byte, so the upper
# bound holds for every text; the lower one for all but long runs of one character.
ESTIMATE_BYTES_PER_TOKEN = 3.5
ESTIMATE_MOST_BYTES_PER_TOKEN = 8


@dataclass(frozen=True, slots=True)
class RankedCounter:
    """An encoding with its ranks: exact."""

    name: str
    encode: Callable[[str], list[int]]
    lengths: array[int]
    """Bytes of each token, by rank."""
    method: CountMethod = CountMethod.EXACT

    def count(self, text: str) -> int:
        return len(self.encode(text))

    def tally(self, text: str, spans: Sequence[tuple[int, int]]) -> Tally:
        return exact_tally(self.encode(text), self.lengths, spans)


@dataclass(frozen=True, slots=True)
class QuickCounter:
    """The same encoding by quicktok's engine, which answers in numpy arrays: exact, and several times faster."""

    name: str
    engine: Any
    lengths: Any
    """Bytes of each token, by rank, as a numpy array."""
    method: CountMethod = CountMethod.EXACT

    def count(self, text: str) -> int:
        return self.engine.count(text)

    def tally(self, text: str, spans: Sequence[tuple[int, int]]) -> Tally:
        if not spans:
            total = self.count(text)
            return Tally(total, 0, total, total)
        tokens, _ = self.engine.encode_batch([text], threads=1)
        sizes = self.lengths[tokens]
        starts = sizes.cumsum() - sizes
        edges = starts.searchsorted([edge for span in spans for edge in span])
        total = len(tokens)
        return Tally(total, int((edges[1::2] - edges[::2]).sum()), total, total)


@dataclass(frozen=True, slots=True)
class ByteCounter:
    """What is left without ranks: an estimate from the number of bytes, with wide bounds."""

    name: str = "bytes"
    method: CountMethod = CountMethod.ESTIMATE

    def count(self, text: str) -> int:
        return _estimate(_size(text))

    def tally(self, text: str, spans: Sequence[tuple[int, int]]) -> Tally:
        size = _size(text)
        inside = sum(end - start for start, end in spans)
        total = _estimate(size)
        within = total * inside // size if size else 0
        return Tally(total, within, -(-size // ESTIMATE_MOST_BYTES_PER_TOKEN), size)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _estimate(size: int) -> int:
    return -int(-size // ESTIMATE_BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class EncodingStatus:
    """Which source an encoding came from: TIKTOKEN_CACHE_DIR, the name of a package, estimate."""

    name: str
    source: str
    method: CountMethod
    engine: str
    """quicktok, tiktoken, splintr, or nothing for an estimate."""


class _NoRanks(Exception):
    """No source has the rank file."""


class _CtokModule(Protocol):
    def token_count(self, text: str, version: str) -> int: ...


class Tokenizers:
    """All tokenizers of a process. Cheap to make; ``sources`` replaces where ranks are looked for.

    ``quicktok``, ``ctok`` and ``packaged`` (DeepSeek's and Gemma's) say whether those packages may count, if they are installed.
    """

    def __init__(
        self,
        *,
        cache_dir: Path | None = None,
        sources: Sequence[ranks.RankSource] | None = None,
        environment: Mapping[str, str] | None = None,
        quicktok: bool = True,
        ctok: bool = True,
        packaged: bool = True,
    ) -> None:
        surroundings = os.environ if environment is None else environment
        self._sources = ranks.default_sources(surroundings, cache_dir) if sources is None else list(sources)
        self._lock = threading.Lock()
        self._counters: dict[str, Counter] = {}
        self._status: dict[str, EncodingStatus] = {}
        self._quicktok_wanted = quicktok
        self._ctok_wanted = ctok
        self._packaged_wanted = packaged
        self._ctok: _CtokModule | None = None

    def count_o200k(self, text: str) -> int:
        """Tokens by o200k_base, the unit in which every stored unit's size is kept; an estimate when there are no ranks."""
        return self.for_name(O200K).count(well_formed(text))

    def for_name(self, name: str) -> Counter:
        """The counter of a tiktoken encoding, ``deepseek_v3`` or ``gemma``; one that estimates when it cannot be had or the name is not known."""
        counter = self._counters.get(name)
        if counter is None:
            with self._lock:
                counter = self._counters.get(name)
                if counter is None:
                    counter, source, engine = self._load(name)
                    self._status[name] = EncodingStatus(name, source, counter.method, engine)
                    self._counters[name] = counter
        return counter

    def claude(self) -> Callable[[str, str], int] | None:
        """(text, version) -> tokens of a single user message by the optional package ctok (Python 3.12+); None when it is not installed."""
        if not self._ctok_wanted:
            return None
        with self._lock:
            if self._ctok is None:
                if importlib.util.find_spec("ctok") is None:
                    self._ctok_wanted = False
                    return None
                self._ctok = cast("_CtokModule", importlib.import_module("ctok"))
        return self._ctok.token_count

    def status(self, *names: str) -> list[EncodingStatus]:
        """Where each encoding came from: of those loaded so far, or of ``names``, which are then loaded."""
        for name in names:
            self.for_name(name)
        return [self._status[name] for name in names or sorted(self._counters)]

    def _load(self, name: str) -> tuple[Counter, str, str]:
        if name in packaged_tokenizers.PACKAGED:
            packaged = packaged_tokenizers.load(name) if self._packaged_wanted else None
            return (ByteCounter(), "estimate", "") if packaged is None else (packaged, packaged.source, "splintr")
        # Imported here: tiktoken costs 0.1 s that a command line without counting need not pay.
        import tiktoken  # noqa: PLC0415

        known: dict[str, Any] = dict(vars(importlib.import_module("tiktoken_ext.openai_public")))

        labels: list[str] = []

        def load_ranks(address: str, expected_hash: str) -> dict[bytes, int]:
            found = ranks.find(ranks.RankFile(address, expected_hash), self._sources)
            if found is None:
                raise _NoRanks
            contents, label = found
            labels.append(label)
            return ranks.parse(contents)

        def no_ranks(**_: str) -> dict[bytes, int]:
            raise _NoRanks

        # Copies of the constructors that see our loaders, and each other's copies, where the originals see those that download.
        constructors = cast("dict[str, FunctionType]", known["ENCODING_CONSTRUCTORS"])
        known |= {each: FunctionType(constructor.__code__, known) for each, constructor in constructors.items()}
        known |= {"load_tiktoken_bpe": load_ranks, "data_gym_to_mergeable_bpe_ranks": no_ranks}
        if name not in constructors:
            return ByteCounter(), "estimate", ""
        try:
            parts: dict[str, Any] = known[name]()
        except _NoRanks:
            return ByteCounter(), "estimate", ""
        exact = _ranked_counter(name, tiktoken.Encoding(**parts), parts["mergeable_ranks"])
        if name == O200K and self._quicktok_wanted:
            # tiktoken's tables go before quicktok's come: both at once were the most memory that the service ever took (docs/benchmarks.md).
            expected = [exact.encode(probe) for probe in _PROBES]
            lengths = exact.lengths
            parts.clear()
            del exact
            quick = _quick_counter(name, lengths, expected)
            if quick is not None:
                return quick, labels[0], "quicktok"
            parts = known[name]()
            exact = _ranked_counter(name, tiktoken.Encoding(**parts), parts["mergeable_ranks"])
        return exact, labels[0], "tiktoken"


_PROBES = (
    "The tool's answer: it'll cost 1234567 tokens, won't it?\r\n\r\n  - Ação, coração; não há\u00a0nada.\n\t// a/b//c\n",
    'def f(x): return {\'k\': [1, 2, 3], "u": "caf\u00e9 cafe\u0301"}   \n\n\n    <|endoftext|> <|im_start|>',
    "\u4f60\u597d\uff0c\u4e16\u754c \u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2028\u3000\u200b",
)
_MOST_AT_ONCE = 100_000
"""Characters. tiktoken's regular expression overflows its stack between 100,000 and 1,000,000 blanks in a row, and panics."""
_LONG_BLANK = re.compile(rf"\s{{{_MOST_AT_ONCE // 2}}}")


def _without_panic(encoding: tiktoken.Encoding) -> Callable[[str], list[int]]:
    """Tiktoken's encoding; a text with a very long blank is cut into pieces, which costs at most a token for each."""

    def encode(text: str) -> list[int]:
        if len(text) <= _MOST_AT_ONCE or _LONG_BLANK.search(text) is None:
            return encoding.encode_ordinary(text)
        pieces = (text[at : at + _MOST_AT_ONCE] for at in range(0, len(text), _MOST_AT_ONCE))
        return [token for piece in pieces for token in encoding.encode_ordinary(piece)]

    return encode


def _ranked_counter(name: str, encoding: tiktoken.Encoding, mergeable: Mapping[bytes, int]) -> RankedCounter:
    lengths = array("H", bytes(2 * (encoding.max_token_value + 1)))
    for token, rank in mergeable.items():
        lengths[rank] = len(token)
    return RankedCounter(name, _without_panic(encoding), lengths)


def _quick_counter(name: str, lengths: array[int], expected: Sequence[list[int]]) -> QuickCounter | None:
    """The counter by quicktok; None when the package is missing, its native part does not load or it disagrees with tiktoken on a probe."""
    try:
        engine: Any = importlib.import_module("quicktok").get_encoding(name)
        numpy: Any = importlib.import_module("numpy")
    except (ImportError, OSError, RuntimeError):
        return None
    if [engine.encode_ordinary(probe) for probe in _PROBES] != list(expected):
        return None
    return QuickCounter(name, engine, numpy.array(lengths, dtype="int64"))
