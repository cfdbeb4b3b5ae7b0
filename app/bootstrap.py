"""The one place that builds Lastro's objects and hands them to each other."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from adapters.registry import AdapterRegistry
from adapters.tokenizers import Tokenizers
from app.health import Health
from app.ingest import Ingest
from app.registry.registry import Registry
from app.router.pipeline import Router
from app.router.planner import Planner
from app.settings import EngineName, Settings
from app.strategies.runner import StrategyRunner
from app.warmup import warm
from graph.connection import Database, connect
from graph.context_store import ContextStore
from graph.engines.base import Engine
from graph.engines.embedded import EmbeddedEngine
from graph.engines.neo4j import GivenNeo4j
from graph.registry_store import RegistryStore
from graph.schema import migrate
from graph.unit_store import UnitStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Lastro:
    """A running Lastro: what doors and commands call."""

    settings: Settings
    engine: Engine
    database: Database
    registry: Registry
    ingest: Ingest
    units: UnitStore
    router: Router
    adapters: AdapterRegistry
    health: Health

    async def warm(self) -> None:
        """Plan the hot statements; once after the start, and again after the engine came back."""
        await warm(self.registry, self.ingest, self.router)


def engine_of(settings: Settings) -> Engine:
    """The engine that the settings name. Nothing is started."""
    if settings.engine is EngineName.NEO4J:
        return GivenNeo4j(settings.neo4j_uri, settings.neo4j_user, settings.neo4j_password.get_secret_value(), settings.neo4j_database)
    return EmbeddedEngine(settings.data, heap_mb=settings.embedded_heap_mb)


@asynccontextmanager
async def running(settings: Settings, engine: Engine | None = None, *, warm_up: bool = True) -> AsyncGenerator[Lastro]:
    """Start everything, yield it, and stop it in the opposite order, whatever happens.

    ``warm_up`` plans the hot statements first; a command that runs one of them once does without.

    Raises:
        EngineFailure, DatabaseUnavailable: the database cannot be had; nothing is left running.
    """
    engine = engine or engine_of(settings)
    address = await engine.start()
    try:
        database = await connect(address, wait_s=settings.startup_wait_s)
        try:
            secret = await migrate(database)
            lastro = _wire(settings, engine, database, secret)
            if warm_up:
                await lastro.warm()
            yield lastro
        finally:
            await database.close()
    finally:
        await engine.stop()


def _wire(settings: Settings, engine: Engine, database: Database, secret: str) -> Lastro:
    tokenizers = Tokenizers()
    fence_key = hmac.digest(bytes.fromhex(secret), b"fence", hashlib.sha256)
    adapters = AdapterRegistry(fence_key, tokenizers=tokenizers)
    units = UnitStore(database)
    contexts = ContextStore(database)
    registry = Registry(RegistryStore(database))
    return Lastro(
        settings=settings,
        engine=engine,
        database=database,
        registry=registry,
        ingest=Ingest(units, tokenizers, settings),
        units=units,
        router=Router(registry, Planner(adapters), StrategyRunner(contexts, units), units, adapters),
        adapters=adapters,
        health=Health(engine, database),
    )
