"""Attachments for every door: the same operations on a store of this process and through a service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from app.attachments.attachments import Attachments
from graph.model.attachments import StoredAttachment, check_media_type
from graph.model.scope import AuthorizedScope


class AttachmentOperations(Protocol):
    """What can be done with originals."""

    async def put_attachment(self, sha256: str, media_type: str, body: AsyncIterator[bytes]) -> StoredAttachment: ...
    def get_attachment(self, sha256: str) -> AsyncIterator[bytes]: ...


class LocalAttachments:
    """On a store that this process runs."""

    def __init__(self, attachments: Attachments, scope: AuthorizedScope) -> None:
        self._attachments = attachments
        self._scope = scope

    async def put_attachment(self, sha256: str, media_type: str, body: AsyncIterator[bytes]) -> StoredAttachment:
        return await self._attachments.put(self._scope, sha256, check_media_type(media_type), body)

    async def get_attachment(self, sha256: str) -> AsyncIterator[bytes]:
        async with self._attachments.opened(self._scope, sha256) as found:
            async for piece in found.pieces():
                yield piece
