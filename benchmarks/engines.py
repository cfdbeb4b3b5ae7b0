"""The engines that benchmarks run on: started here, so that the service and the raw driver both speak to the same one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path

from app.bootstrap import Lastro, running
from app.settings import EngineName, load_settings
from benchmarks.given_engine import GivenEngine
from graph.engines.base import Address, Engine
from graph.engines.embedded import EmbeddedEngine
from graph.engines.local_server import LocalNeo4j


class BenchEngine(StrEnum):
    """What ``--engine`` takes."""

    EMBEDDED = "embedded"
    NEO4J_LTS = "neo4j-5.26"
    NEO4J_NEWEST = "neo4j-newest"


@asynccontextmanager
async def started(engine: BenchEngine, folder: Path, *, kept: bool = False) -> AsyncGenerator[Address]:
    """A database, stopped behind the block. The data of the embedded one is below ``folder``; with ``kept`` that of Neo4j too, so that it can
    be looked at, or started again, after that.
    """
    neo4j_folder = folder / "neo4j" if kept else None
    match engine:
        case BenchEngine.EMBEDDED:
            made: Engine = EmbeddedEngine(folder / "embedded", heap_mb=load_settings().embedded_heap_mb)
        case BenchEngine.NEO4J_LTS:
            made = LocalNeo4j("5.26", neo4j_folder)
        case BenchEngine.NEO4J_NEWEST:
            made = LocalNeo4j("newest", neo4j_folder)
    try:
        yield await made.start()
    finally:
        await made.stop()


@asynccontextmanager
async def lastro_on(address: Address, folder: Path, *, warm_up: bool = False, embedder: str | None = None) -> AsyncGenerator[Lastro]:
    """Lastro in this process on a database that is there: to make keys, and to measure without HTTP. It gives no unit its embedding."""
    settings = load_settings(data=folder / "in-process", engine=EngineName.NEO4J, answer_cache_ttl_s=0, embedder=embedder)
    async with running(settings, GivenEngine(address), warm_up=warm_up) as lastro:
        yield lastro
