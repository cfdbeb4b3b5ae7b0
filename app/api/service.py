"""The FastAPI application: routes, error answers and the life of the service around them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from app.api import attachment_routes, audit_routes, erasure_routes, key_routes, ledger_routes, policy_routes, quota_routes, routes
from app.api.guard import Guard
from app.api.problems import problem, trace_of
from app.bootstrap import Lastro
from app.settings import Settings
from graph.model.errors import InvalidInput, LastroError, NotFound

log = logging.getLogger(__name__)

WATCH_S = 1.0


class MethodNotAllowed(InvalidInput):
    code = "method_not_allowed"
    message = "This address does not take that method."
    hint = "/openapi.json lists what each address takes."


def create_service(settings: Settings, running: Callable[[], AbstractAsyncContextManager[Lastro]]) -> FastAPI:
    """The application. ``running`` starts Lastro when the server starts and stops it with the server."""

    @asynccontextmanager
    async def lifespan(service: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            try:
                lastro = await stack.enter_async_context(running())
            except LastroError as failure:
                service.state.start_failure = failure
                raise
            service.state.lastro = lastro
            await stack.enter_async_context(lastro.retention_job.job.running())
            await stack.enter_async_context(lastro.tiering_job.job.running())
            await stack.enter_async_context(lastro.sweeping_job.job.running())
            await stack.enter_async_context(lastro.embedding.running(lastro.warm_vectors))
            watching = asyncio.create_task(_warm_after_restarts(lastro), name="warm after restarts")
            try:
                yield
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)

    service = FastAPI(
        title="Lastro",
        version=version("lastro"),
        summary="One vendor-neutral graph of what an organisation's agents know.",
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere; /openapi.json is the document
        redoc_url=None,
    )
    service.include_router(routes.probes)
    service.include_router(routes.v1)
    service.include_router(key_routes.keys)
    service.include_router(policy_routes.policies)
    service.include_router(quota_routes.quotas)
    service.include_router(quota_routes.usage)
    service.include_router(ledger_routes.ledger)
    service.include_router(audit_routes.audit)
    service.include_router(erasure_routes.erasures)
    service.include_router(attachment_routes.attachments)
    service.add_middleware(Guard, most=settings.max_concurrent_requests)

    async def on_domain_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, LastroError)
        return problem(error, trace_of(request))

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        found = MethodNotAllowed() if error.status_code == 405 else NotFound("There is nothing at this address.")  # noqa: PLR2004
        return problem(found, trace_of(request))

    service.add_exception_handler(LastroError, on_domain_error)
    service.add_exception_handler(HTTPException, on_http_error)
    return service


async def _warm_after_restarts(lastro: Lastro) -> None:
    """An engine that came back has planned nothing yet."""
    while True:
        await asyncio.sleep(WATCH_S)
        if await lastro.engine.restarted():
            log.warning("the engine came back; planning the hot statements again")
            await lastro.warm()
