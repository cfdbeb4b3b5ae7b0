"""A second service on the engine of the first, with settings of its own: cheaper than an engine of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import uvicorn
from conftest import START_S, RunningServer, Service

from app.api.service import create_service
from app.bootstrap import running
from app.settings import load_settings
from graph.engines.base import Address, Engine


class LentEngine:
    """An engine that another started and will stop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name = engine.name

    async def start(self) -> Address:
        return await self._engine.start()

    async def stop(self) -> None:
        """Nothing: its owner does."""

    @property
    def alive(self) -> bool:
        return self._engine.alive

    async def restarted(self) -> bool:
        return False

    async def sql(self, command: str, deadline_s: float = 30.0) -> list[dict[str, object]]:
        return await self._engine.sql(command, deadline_s)


@contextmanager
def service_beside(service: Service, **settings: Any) -> Generator[Service]:
    """A service on a port of its own, in the loop of the first."""
    told = load_settings(data=service.settings.data, **settings)
    engine = LentEngine(service.lastro.engine)
    application = create_service(told, lambda: running(told, engine, warm_up=False))
    server = RunningServer(uvicorn.Config(application, host="127.0.0.1", port=0, log_config=None, access_log=False))
    serving = asyncio.run_coroutine_threadsafe(server.serve(), service.loop)
    assert server.listening.wait(START_S)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Service(service.engine_name, told, application.state.lastro, f"http://127.0.0.1:{port}", service.loop)
    finally:
        server.should_exit = True
        serving.result(60)


def until(what: Callable[[], bool], within_s: float, complaint: str) -> float:
    """Wait until it is so: after how many seconds."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < within_s, complaint
        time.sleep(0.05)
    return time.monotonic() - began
