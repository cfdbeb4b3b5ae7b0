"""Where the bytes of originals lie: a folder of this machine, or any target of fsspec (S3, GCS, Azure, SFTP …).

Keys come from ``graph.model.attachments.object_key``: plain lower-case parts, never anything that an id could turn into another path. Nothing
is trusted that is read: who reads compares the digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from graph.model.errors import AttachmentsUnavailable, SettingsInvalid

FOLDER_MODE = 0o700
FILE_MODE = 0o600
INCOMING = "incoming"
"""Folder for what is arriving. No tenant's, whose names begin with ``t-`` or ``t~``."""
LEFT_BEHIND_S = 24 * 3600
"""Files that arrived and were not put in place within this time belong to nobody any more."""
PIECE = 1024 * 1024
"""Bytes read or written at once."""


@dataclass(slots=True)
class Incoming:
    """What is arriving: a file that only this process knows, with the digest and size of what has come."""

    path: Path
    file: BinaryIO
    digest: Any = field(default_factory=hashlib.sha256)
    size: int = 0

    def write(self, piece: bytes) -> None:
        """Raises AttachmentsUnavailable when there is no room."""
        with _told():
            self.file.write(piece)
        self.digest.update(piece)
        self.size += len(piece)


class Objects(Protocol):
    """Holds bytes by key. All methods block; what is put is durable and whole when ``put`` returns.

    Raises:
        AttachmentsUnavailable: the target does not answer, or has no room.
    """

    def incoming(self) -> contextlib.AbstractContextManager[Incoming]:
        """A file to write to, gone at the end of the block unless it was put in place."""
        ...

    def put(self, incoming: Incoming, key: str) -> None:
        """Put what arrived in place, over whatever is there."""
        ...

    def open(self, key: str) -> BinaryIO | None:
        """The bytes as a local file that nobody changes while it is read; None when there are none."""
        ...

    def remove(self, key: str) -> None:
        """Remove the bytes; to do it again is no error."""
        ...

    def remove_all(self, prefix: str) -> None:
        """Remove everything whose key begins with this folder."""
        ...

    def tidy(self) -> None:
        """Remove what arrived long ago and was never put in place."""
        ...


@contextmanager
def _arriving(folder: Path) -> Generator[Incoming]:
    # What goes wrong within the block is the caller's own, and is told in the caller's words.
    with _told():
        _make_folder(folder)
        path = folder / secrets.token_hex(16)
        file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb")
    try:
        yield Incoming(path, file)
    finally:
        with _told():
            path.unlink(missing_ok=True)
            file.close()


def _finished(incoming: Incoming) -> None:
    incoming.file.flush()
    os.fsync(incoming.file.fileno())


def _make_folder(folder: Path) -> None:
    """The folder with those above it, each for its owner alone, and each told to the disk before anything relies on it."""
    missing: list[Path] = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        with contextlib.suppress(FileExistsError):
            each.mkdir(mode=FOLDER_MODE)
        _sync_folder(each.parent)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # folders cannot be opened there, and the file system keeps its own journal
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _tidied(folder: Path) -> None:
    before = time.time() - LEFT_BEHIND_S
    if folder.is_dir():
        for path in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < before:
                    path.unlink()


@contextmanager
def _told() -> Generator[None]:
    """The system's own words, which hold paths, stay out of what callers see."""
    try:
        yield
    except OSError as failure:
        raise AttachmentsUnavailable(f"The store of attachments does not answer: {type(failure).__name__}.") from None


class FolderObjects:
    """In a folder: files for the owner alone, put in place by a rename after they are on the disk."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def incoming(self) -> contextlib.AbstractContextManager[Incoming]:
        return _arriving(self._root / INCOMING)

    def put(self, incoming: Incoming, key: str) -> None:
        with _told():
            _finished(incoming)
            target = self._root / key
            _make_folder(target.parent)
            incoming.path.replace(target)
            _sync_folder(target.parent)

    def open(self, key: str) -> BinaryIO | None:
        with _told():
            try:
                return (self._root / key).open("rb")
            except FileNotFoundError:
                return None

    def remove(self, key: str) -> None:
        target = self._root / key
        with _told():
            target.unlink(missing_ok=True)
            if target.parent.is_dir():
                _sync_folder(target.parent)

    def remove_all(self, prefix: str) -> None:
        folder = self._root / prefix
        with _told():
            if folder.is_dir():
                shutil.rmtree(folder)
                _sync_folder(self._root)

    def tidy(self) -> None:
        with _told():
            _tidied(self._root / INCOMING)


class FsspecObjects:
    """In a target of fsspec, by its own client. What arrives and what is read goes through a file of this machine.

    Object stores show an object whole or not at all; where a target does not, the digest tells on reading, and storing again mends it.
    """

    def __init__(self, url: str, spool: Path) -> None:
        """``spool``: folder for what is on its way.

        Raises:
            SettingsInvalid: fsspec, or the package for this kind of target, is not installed, or the address is none.
        """
        try:
            # An extra, and 0.1 s that a folder need not pay.
            core: Any = importlib.import_module("fsspec.core")
            filesystem, root = core.url_to_fs(url)
        except (ImportError, ValueError) as failure:
            hint = (
                "Install lastro[fsspec] and fsspec's package for this kind of target (s3fs, gcsfs, adlfs …), or unset LASTRO_ATTACHMENTS."
            )
            raise SettingsInvalid(
                f"The target that LASTRO_ATTACHMENTS names cannot be used: {type(failure).__name__}.", hint=hint
            ) from None
        self._filesystem: Any = filesystem
        self._root = cast("str", root).rstrip("/")
        self._spool = spool

    def incoming(self) -> contextlib.AbstractContextManager[Incoming]:
        return _arriving(self._spool / INCOMING)

    def put(self, incoming: Incoming, key: str) -> None:
        target = self._path(key)
        with _told():
            _finished(incoming)
            self._filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._filesystem.put_file(str(incoming.path), target)

    def open(self, key: str) -> BinaryIO | None:
        with _told():
            _make_folder(self._spool)
            # Without a name: nothing of it is left when this process dies.
            local = cast("BinaryIO", tempfile.TemporaryFile(dir=self._spool))  # noqa: SIM115 (the caller reads and closes it)
            try:
                with self._filesystem.open(self._path(key), "rb") as remote:
                    shutil.copyfileobj(remote, local, PIECE)
            except FileNotFoundError:
                local.close()
                return None
            except BaseException:
                local.close()
                raise
            local.seek(0)
            return local

    def remove(self, key: str) -> None:
        with _told(), contextlib.suppress(FileNotFoundError):
            self._filesystem.rm_file(self._path(key))

    def remove_all(self, prefix: str) -> None:
        with _told(), contextlib.suppress(FileNotFoundError):
            # A client may remember what a folder held before other replicas wrote into it.
            self._filesystem.invalidate_cache()
            self._filesystem.rm(self._path(prefix), recursive=True)

    def tidy(self) -> None:
        with _told():
            _tidied(self._spool / INCOMING)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"


def objects_of(target: str | None, data: Path) -> Callable[[], Objects]:
    """How to make the store that the settings name; nothing is made or loaded before the first original comes."""
    if target is None:
        return lambda: FolderObjects(data / "attachments")
    if "://" not in target:
        return lambda: FolderObjects(Path(target))
    if target.startswith("file://"):
        return lambda: FolderObjects(Path(target.removeprefix("file://")))
    return lambda: FsspecObjects(target, data / "attachments-spool")
