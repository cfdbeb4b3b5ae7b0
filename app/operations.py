"""The operations that every door offers, on a running Lastro in this process. ``LastroClient`` has the same ones over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from app.bootstrap import Lastro
from graph.model.answer import ContextAnswer, Lineage
from graph.model.attachments import StoredAttachment, check_media_type
from graph.model.query import ContextQuery
from graph.model.scope import AuthorizedScope
from graph.model.units import ContextUnit, UnitPage, WriteResult


class Operations(Protocol):
    """What an agent can do with its context."""

    async def write(self, units: Sequence[ContextUnit], *, model: str | None = None) -> WriteResult: ...
    async def read(self, unit_id: str) -> ContextUnit: ...
    async def list_units(
        self, *, session_id: str | None = None, task_id: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> UnitPage: ...
    async def lineage(self, unit_id: str, *, direction: str = "both", depth: int = 3) -> Lineage: ...
    async def context(self, query: ContextQuery) -> ContextAnswer: ...
    async def put_attachment(self, sha256: str, media_type: str, body: AsyncIterator[bytes]) -> StoredAttachment: ...
    def get_attachment(self, sha256: str) -> AsyncIterator[bytes]: ...


class LocalOperations:
    """On a store that this process runs."""

    def __init__(self, lastro: Lastro, scope: AuthorizedScope) -> None:
        self._lastro = lastro
        self._scope = scope

    async def write(self, units: Sequence[ContextUnit], *, model: str | None = None) -> WriteResult:
        scope = self._scope if model is None else self._lastro.registry.speaking_as(self._scope, model)
        return await self._lastro.ingest.write(scope, units)

    async def read(self, unit_id: str) -> ContextUnit:
        return await self._lastro.units.read(self._scope, unit_id)

    async def list_units(
        self, *, session_id: str | None = None, task_id: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> UnitPage:
        return await self._lastro.units.page(self._scope, session_id=session_id, task_id=task_id, limit=limit, cursor=cursor)

    async def lineage(self, unit_id: str, *, direction: str = "both", depth: int = 3) -> Lineage:
        return await self._lastro.units.lineage(self._scope, unit_id, before=direction != "after", after=direction != "before", depth=depth)

    async def context(self, query: ContextQuery) -> ContextAnswer:
        return await self._lastro.router.answer_within(query, self._scope)

    async def put_attachment(self, sha256: str, media_type: str, body: AsyncIterator[bytes]) -> StoredAttachment:
        return await self._lastro.attachments.put(self._scope, sha256, check_media_type(media_type), body)

    async def get_attachment(self, sha256: str) -> AsyncIterator[bytes]:
        async with self._lastro.attachments.opened(self._scope, sha256) as found:
            async for piece in found.pieces():
                yield piece
