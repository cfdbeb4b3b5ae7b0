"""Where the ranks of an OpenAI encoding come from, offline, in this order: the user's TIKTOKEN_CACHE_DIR, our own cache, the quicktok package.

A rank file is what tiktoken would download: lines of base64 token and rank, kept under the SHA-1 of its address. Every file, wherever it
comes from, must have the SHA-256 that tiktoken itself expects. Nothing here opens a connection.
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Protocol

# The vocabularies of the quicktok package, by the last part of the address of the rank file they were made from.
_QUICKTOK_VOCABULARIES = {"o200k_base.tiktoken": "o200k.vocab", "cl100k_base.tiktoken": "cl100k.vocab"}


@dataclass(frozen=True, slots=True)
class RankFile:
    """What tiktoken asks for: an address and the SHA-256 its contents must have."""

    address: str
    sha256: str

    @property
    def cache_name(self) -> str:
        """The file's name in a tiktoken cache folder."""
        return hashlib.sha1(self.address.encode(), usedforsecurity=False).hexdigest()

    def is_whole(self, contents: bytes) -> bool:
        return hashlib.sha256(contents).hexdigest() == self.sha256


class RankSource(Protocol):
    """A place where the contents of a rank file may be had; None when it has none that is whole."""

    @property
    def label(self) -> str: ...

    def read(self, wanted: RankFile) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder laid out as tiktoken's cache. It is only read: a user's folder is never changed."""

    folder: Path
    label: str

    def read(self, wanted: RankFile) -> bytes | None:
        try:
            contents = (self.folder / wanted.cache_name).read_bytes()
        except OSError:
            return None
        return contents if wanted.is_whole(contents) else None


@dataclass(frozen=True, slots=True)
class QuicktokSource:
    """The vocabulary that the quicktok package carries, turned back into the rank file."""

    label: str = "quicktok package"

    def read(self, wanted: RankFile) -> bytes | None:
        vocabulary = _QUICKTOK_VOCABULARIES.get(wanted.address.rsplit("/", 1)[-1])
        if vocabulary is None:
            return None
        try:
            packed = (files("quicktok") / "data" / vocabulary).read_bytes()
            contents = _rank_file(packed)
        except (ImportError, OSError, struct.error):
            return None
        return contents if wanted.is_whole(contents) else None


@dataclass(frozen=True, slots=True)
class CachedSource:
    """Our own cache folder in front of another source. A missing or damaged file is written again, whole or not at all.

    A folder that cannot be written is no failure: the contents are made anew each time.
    """

    folder: Path
    behind: RankSource

    @property
    def label(self) -> str:
        return self.behind.label

    def read(self, wanted: RankFile) -> bytes | None:
        kept = FolderSource(self.folder, "cache").read(wanted)
        if kept is not None:
            return kept
        made = self.behind.read(wanted)
        if made is not None:
            with suppress(OSError):
                _write_whole(self.folder / wanted.cache_name, made)
        return made


def default_sources(environment: Mapping[str, str], cache_dir: Path | None = None) -> list[RankSource]:
    """The sources in their order; ``cache_dir`` is ours, by default ``tiktoken`` under $LASTRO_CACHE or ~/.cache/lastro."""
    sources: list[RankSource] = []
    users_own = environment.get("TIKTOKEN_CACHE_DIR")
    if users_own:
        sources.append(FolderSource(Path(users_own), "TIKTOKEN_CACHE_DIR"))
    folder = cache_dir or _own_folder(environment)
    sources.append(QuicktokSource() if folder is None else CachedSource(folder, QuicktokSource()))
    return sources


def find(wanted: RankFile, sources: Sequence[RankSource]) -> tuple[bytes, str] | None:
    """The contents of the rank file and the label of the first source that has it."""
    for source in sources:
        contents = source.read(wanted)
        if contents is not None:
            return contents, source.label
    return None


def parse(contents: bytes) -> dict[bytes, int]:
    """Token to rank."""
    ranks: dict[bytes, int] = {}
    for line in contents.splitlines():
        token, _, rank = line.partition(b" ")
        ranks[base64.b64decode(token)] = int(rank)
    return ranks


def _own_folder(environment: Mapping[str, str]) -> Path | None:
    base = environment.get("LASTRO_CACHE")
    if base:
        return Path(base) / "tiktoken"
    try:
        return Path.home() / ".cache" / "lastro" / "tiktoken"
    except RuntimeError:  # a user without a home
        return None


def _rank_file(packed: bytes) -> bytes:
    """The layout of quicktok, little endian: u32 count, then for each token u16 length, the bytes, u32 rank."""
    (count,) = struct.unpack_from("<I", packed)
    at = 4
    tokens: list[tuple[int, bytes]] = []
    for _ in range(count):
        (length,) = struct.unpack_from("<H", packed, at)
        start, at = at + 2, at + 2 + length
        tokens.append((struct.unpack_from("<I", packed, at)[0], packed[start:at]))
        at += 4
    tokens.sort()
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in tokens)


def _write_whole(path: Path, contents: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(contents)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)
