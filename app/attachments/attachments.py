"""Storing and reading originals: the graph says who may, the objects hold the bytes, and the digest ties them."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import BinaryIO

from anyio import to_thread

from app.attachments.objects import PIECE, Objects
from graph.attachment_store import AttachmentStore, DueOriginal
from graph.model.attachments import StoredAttachment, check_digest, tenant_folder
from graph.model.errors import AttachmentDamaged, AttachmentMismatch, AttachmentTooLarge, LastroError, TenantBeingErased
from graph.model.scope import AuthorizedScope

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenAttachment:
    """An original that is being read: its bytes have been compared with the digest. ``unit_id`` names the unit that opened it."""

    attachment: StoredAttachment
    unit_id: str
    file: BinaryIO

    async def pieces(self) -> AsyncIterator[bytes]:
        """The bytes, in order."""
        while piece := await to_thread.run_sync(self.file.read, PIECE):
            yield piece


class Attachments:
    """The originals of all tenants."""

    def __init__(self, store: AttachmentStore, make_objects: Callable[[], Objects], *, most_bytes: int, orphan_s: float) -> None:
        """``most_bytes``: largest original. ``orphan_s``: how long one stays that no unit names."""
        self._store = store
        self._make_objects = make_objects
        self._objects: Objects | None = None
        self._lock = Lock()
        self._orphan_s = orphan_s
        self.most_bytes = most_bytes

    async def put(self, scope: AuthorizedScope, sha256: str, media_type: str, body: AsyncIterator[bytes]) -> StoredAttachment:
        """Store an original in the caller's place: on the disk and in the graph when this returns. To store it again changes nothing,
        but mends what was damaged.

        Raises:
            AttachmentTooLarge, AttachmentMismatch, QuotaExceeded: nothing is kept.
            AttachmentBusy, AttachmentsUnavailable, DatabaseUnavailable: send it again.
        """
        check_digest(sha256)
        objects = await to_thread.run_sync(self._made)
        with objects.incoming() as incoming:
            held = bytearray()
            async for piece in body:
                held += piece
                if incoming.size + len(held) > self.most_bytes:
                    raise AttachmentTooLarge(f"The original is over the limit of {self.most_bytes} bytes.")
                if len(held) >= PIECE:
                    await to_thread.run_sync(incoming.write, bytes(held))
                    held.clear()
            await to_thread.run_sync(incoming.write, bytes(held))
            if incoming.digest.hexdigest() != sha256:
                raise AttachmentMismatch
            stored = StoredAttachment(sha256=sha256, bytes=incoming.size, media_type=media_type)
            # Room first, then the bytes, then that they are there: whatever breaks off, the graph knows of every file, and the job removes
            # what nobody names.
            original = await self._store.reserve(scope, stored, keep_s=self._orphan_s)
            await to_thread.run_sync(objects.put, incoming, original.object_key)
        try:
            await self._store.stored(scope, original, self._remove)
        except TenantBeingErased:
            # The tenant's folder may have been removed before these bytes came into it.
            await self._remove(original.object_key)
            raise
        return stored

    @asynccontextmanager
    async def opened(self, scope: AuthorizedScope, sha256: str) -> AsyncGenerator[OpenAttachment]:
        """An original, for the time of the block.

        Raises:
            NotFound: no unit that the caller sees opens one of this digest.
            AttachmentDamaged: what is stored is not what was stored once.
            AttachmentsUnavailable: its target does not answer.
        """
        found = await self._store.find(scope, check_digest(sha256))
        objects = await to_thread.run_sync(self._made)
        file = await to_thread.run_sync(objects.open, found.object_key)
        if file is None:
            log.error("an original is gone from the store of attachments")
            raise AttachmentDamaged
        try:
            if await to_thread.run_sync(_digest, file) != sha256:
                log.error("an original in the store of attachments has another digest than its name")
                raise AttachmentDamaged
            yield OpenAttachment(found.attachment, found.unit_id, file)
        finally:
            file.close()

    async def remove_doomed(self, scope: AuthorizedScope) -> int:
        """Remove the originals whose units were just erased; how many.

        Nobody reads them any more, whatever happens here: what cannot be removed now is left to the background job.
        """
        removed = 0
        try:
            for key in await self._store.doomed(scope):
                removed += await self._store.remove(scope, key, self._remove, datetime.now(UTC))
        except LastroError as error:
            log.warning("originals of erased units are not removed yet: %s", error.code)
        return removed

    async def due(self, now: datetime) -> list[DueOriginal]:
        """Some originals of all tenants that are due: doomed ones, and those that nobody named in time."""
        return await self._store.due(now)

    async def remove(self, scope: AuthorizedScope, due: DueOriginal, now: datetime) -> bool:
        """Remove one of them, if it is still due; whether it was."""
        return await self._store.remove(scope, due.key, self._remove, now)

    async def remove_tenant(self, scope: AuthorizedScope) -> None:
        """Remove the bytes of all originals of a tenant that is being erased."""
        objects = await to_thread.run_sync(self._made)
        await to_thread.run_sync(objects.remove_all, tenant_folder(scope.tenant_id))

    async def tidy(self) -> None:
        """Remove what arrived long ago and was never put in place."""
        objects = await to_thread.run_sync(self._made)
        await to_thread.run_sync(objects.tidy)

    async def _remove(self, object_key: str) -> None:
        objects = await to_thread.run_sync(self._made)
        await to_thread.run_sync(objects.remove, object_key)

    def _made(self) -> Objects:
        with self._lock:
            if self._objects is None:
                self._objects = self._make_objects()
            return self._objects


def _digest(file: BinaryIO) -> str:
    found = hashlib.sha256()
    while piece := file.read(PIECE):
        found.update(piece)
    file.seek(0)
    return found.hexdigest()
