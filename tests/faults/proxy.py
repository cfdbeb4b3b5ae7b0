"""A TCP proxy in front of a database, so that a test can take the database away without harming it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from enum import Enum, auto
from typing import Any, Self
from urllib.parse import urlsplit

from graph.engines.base import Address


class Way(Enum):
    """What the proxy does with bytes and connections."""

    PASS = auto()
    REFUSE = auto()
    """Nobody listens; open connections are reset."""
    STALL = auto()
    """Connections are accepted and kept, and nothing is ever answered."""


class Proxy:
    """Listens on a port of its own, in a thread of its own. Use it as a context manager."""

    def __init__(self, target: Address) -> None:
        parts = urlsplit(target.uri)
        self._target = parts.hostname or "127.0.0.1", parts.port or 7687
        self._way = Way.PASS
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self.port = 0
        self.accepted = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def turn(self, way: Way) -> None:
        """From now on."""
        self._way = way
        if way is Way.REFUSE:
            self._do(self._shut())
        elif self._server is None:
            self._do(self._listen())
        if way is Way.PASS:
            self._do(self._cut())  # what was stalled has lost bytes

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        await self._cut()

    async def _cut(self) -> None:
        cut = set(self._open)
        for writer in cut:
            writer.transport.abort()
        # Not those that were opened meanwhile: the service connects anew at once.
        while cut & self._open:  # noqa: ASYNC110 (each pump takes its own away; an event would say no more)
            await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, far_writer}
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        self._open -= {writer, far_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while block := await reader.read(65_536):
                if self._way is Way.PASS:
                    writer.write(block)
                    await writer.drain()
        except OSError:
            pass
        finally:
            writer.transport.abort()
