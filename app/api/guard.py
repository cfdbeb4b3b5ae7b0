"""The outermost layer of the REST door: a trace id for every request, and an early refusal when too many are under way."""

from __future__ import annotations

import logging
import uuid

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import problem
from graph.model.errors import LastroError, Unavailable

log = logging.getLogger(__name__)


class Overloaded(Unavailable):
    code = "overloaded"
    message = "More requests are under way than this replica takes."
    hint = "Nothing was done. Try again after the time given in Retry-After."


class Guard:
    """ASGI middleware. Health probes are let through, so that an overloaded replica is not taken for a dead one."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace_id = uuid.uuid4().hex
        scope["lastro.trace_id"] = trace_id
        counted = scope["path"] not in {"/healthz", "/readyz"}
        if counted and self._under_way >= self._most:
            await problem(Overloaded(retry_after_s=1), trace_id)(scope, receive, send)
            return
        self._under_way += counted
        started = False

        async def note_start(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, note_start)
        except ClientDisconnect:
            log.debug("request %s: the caller left", trace_id)
        except Exception as failure:  # noqa: BLE001 (the last line: whatever a defect raises becomes an answer without its text)
            # The exception's own text may hold content; its type and place do not.
            last = failure.__traceback__
            while last is not None and last.tb_next is not None:
                last = last.tb_next
            place = f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}" if last is not None else "unknown"
            log.error("request %s failed: %s at %s", trace_id, type(failure).__name__, place)  # noqa: TRY400 (no traceback text on purpose)
            if not started:
                await problem(LastroError(), trace_id)(scope, receive, send)
        finally:
            self._under_way -= counted
