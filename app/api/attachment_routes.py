"""Originals of attachments over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from app.api.routes import as_json, lastro_of, scope_of
from app.registry.permissions import Action
from graph.model.attachments import StoredAttachment, check_digest, check_media_type
from graph.model.errors import AttachmentTooLarge, BodyTooSlow

attachments = APIRouter(prefix="/v1", tags=["attachments"])

UPLOAD_DEADLINE_S = 120.0
"""An original that takes longer to arrive holds a place that others need."""
ANY_BYTES = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
AS_A_FILE = {
    # Whatever it is, and whoever stored it: a browser must neither run it nor guess what it is.
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, no-store",
}


@attachments.put(
    "/attachments/{sha256}",
    status_code=201,
    response_model=StoredAttachment,
    openapi_extra={"requestBody": {"required": True, **ANY_BYTES}},
)
async def store_attachment(request: Request, sha256: str) -> Response:
    """Store the original of an attachment, under the SHA-256 of its bytes, in the place that the request is in.

    Units name it in `attachments`; who may see one that the same agent wrote may read it. What no unit names is removed after a day.
    """
    scope = await scope_of(request, Action.WRITE_UNITS)
    check_digest(sha256)
    media_type = check_media_type(request.headers.get("content-type"))
    lastro = lastro_of(request)
    most = lastro.attachments.most_bytes
    told = request.headers.get("content-length", "")
    if told.isdigit() and (len(told) > 15 or int(told) > most):  # noqa: PLR2004 (digits of a size that exists)
        raise AttachmentTooLarge(f"The original is over the limit of {most} bytes.")
    return as_json(await lastro.attachments.put(scope, sha256, media_type, _arriving(request)), status=201)


async def _arriving(request: Request) -> AsyncIterator[bytes]:
    """The body's pieces, until the time for all of them is over."""
    ends = asyncio.get_running_loop().time() + UPLOAD_DEADLINE_S
    pieces = request.stream().__aiter__()
    while True:
        try:
            async with asyncio.timeout_at(ends):
                piece = await anext(pieces)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise BodyTooSlow from None
        yield piece


@attachments.get("/attachments/{sha256}", response_class=StreamingResponse, responses={200: ANY_BYTES})
async def read_attachment(request: Request, sha256: str) -> Response:
    """The original of an attachment. Compared with its digest before the first byte is sent.

    Not found unless the caller sees a unit that names it, whose own agent stored it.
    """
    scope = await scope_of(request, Action.READ_UNITS)
    lastro = lastro_of(request)
    stack = AsyncExitStack()
    async with stack:
        found = await stack.enter_async_context(lastro.attachments.opened(scope, check_digest(sha256)))
        await lastro.crossings.note(scope, [await lastro.units.read(scope, found.unit_id)])
        kept = stack.pop_all()

    async def pieces() -> AsyncIterator[bytes]:
        async with kept:
            async for piece in found.pieces():
                yield piece

    told = {**AS_A_FILE, "Content-Length": str(found.attachment.bytes), "Content-Disposition": f'attachment; filename="{sha256}"'}
    return StreamingResponse(pieces(), media_type=found.attachment.media_type, headers=told)
