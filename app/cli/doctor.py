"""`lastro doctor`: what is there, what is missing, how to mend it."""

from __future__ import annotations

import asyncio
import platform
import secrets
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from adapters.registry import AdapterRegistry
from app import token_checks
from app.bootstrap import Lastro, running
from app.cli import options, output
from app.cli.access import environment_url
from app.settings import EngineName, Settings, load_settings
from graph.model.errors import EmbedderUnavailable, EmbeddingFailed, EngineFolderInUse, LastroError, SettingsInvalid
from graph.schema import missing_indexes

EXAMPLES = "Examples:  lastro doctor   |   lastro doctor --engine neo4j --json"

_MOST_OUTSIDE = 0.05
"""Bounds hold for about 95 % of requests; more outside is worth a look."""

Row = tuple[str, str, str]
"""What was looked at, ok | warn | bad, and what was found or what to do."""


def doctor(
    engine: options.Engine = None,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Check engine, versions, schema, tokenizers and adapters, on the store itself. Exit code 1 when something is bad."""
    rows: list[Row] = [("python", "ok", f"{platform.python_version()} on {platform.machine()}")]
    rows += [_package(name) for name in ("lastro", "neo4j", "neo4j-rust-ext", "arcadedb-embedded", "tiktoken")]
    settings = load_settings(engine=engine, data=data)
    rows.append(_token_checks(settings.data))
    models, usable = _models(settings)

    async def work() -> None:
        place = str(settings.data) if settings.engine is EngineName.EMBEDDED else settings.neo4j_uri
        rows.append(("engine", "ok", f"{settings.engine} at {place}"))
        async with running(usable, warm_up=False) as lastro:
            rows.extend(await _of(lastro))

    try:
        asyncio.run(work())
    except EngineFolderInUse as error:
        rows.append(("database", "bad", f"{error.message} {_in_use()}"))
    except LastroError as error:
        rows.append(("database", "bad", f"{error.message} {error.hint}"))
    rows += models
    bad = any(state == "bad" for _, state, _ in rows)
    if as_json:
        output.print_json({"healthy": not bad, "checks": [{"check": name, "state": state, "found": found} for name, state, found in rows]})
    else:
        output.table(["check", "state", "found"], rows, wrap_last=True)
    if bad:
        sys.exit(1)


def _in_use() -> str:
    """What to do while a service has the folder: of other commands' hint, LASTRO_URL does not help here."""
    url = environment_url()
    asks = f" That the service of LASTRO_URL can work is said by {url.rstrip('/')}/readyz." if url is not None else ""
    return f"`lastro doctor` works on the store itself, not through LASTRO_URL: stop the service first, or choose another --data.{asks}"


def _models(settings: Settings) -> tuple[list[Row], Settings]:
    """Every model profile, for which no database is needed, and the settings with which the store can still be looked at."""
    try:
        registry = AdapterRegistry(secrets.token_bytes(32), profiles=settings.profiles)
    except SettingsInvalid as error:
        fault: Row = ("profiles", "bad", f"{error.message} {error.hint}")
        without = settings.model_copy(update={"profiles": None})
        return [fault, *_profiles(AdapterRegistry(secrets.token_bytes(32)))], without
    return _profiles(registry), settings


def _profiles(registry: AdapterRegistry) -> list[Row]:
    rows: list[Row] = []
    for family in registry.families():
        name = f"model {family.family}/{family.profile}".rstrip("/")
        if family.problem:
            rows.append((name, "bad", family.problem))
            continue
        exact = family.method is not None and family.method != "estimate"
        rows.append((name, "ok" if exact else "warn", f"{family.method}: {family.tokenizer} ({family.tokenizer_source})"))
    return rows


def _token_checks(data: Path) -> Row:
    """What the vendors' own counters said to our counts, when somebody asked them."""
    found = token_checks.checks(data)
    outside = sum(not check.within for check in found)
    return ("token counts", "warn" if outside > _MOST_OUTSIDE * len(found) else "ok", token_checks.summary(found))


async def _of(lastro: Lastro) -> list[Row]:
    readiness = await lastro.health.readiness()
    rows: list[Row] = [("database", "ok" if readiness.ready else "bad", f"{readiness.server}, answers in {readiness.ms} ms")]
    missing = await missing_indexes(lastro.database)
    rows.append(
        (
            "indexes",
            "bad" if missing else "ok",
            f"missing: {', '.join(missing)}; restart the service to make them" if missing else "all there",
        )
    )
    statements = list(lastro.database.statements)
    rows.append(("statements", "ok", f"{len(statements)} for {lastro.database.statements.dialect}"))
    rows.append(await _embeddings(lastro))
    return rows


async def _embeddings(lastro: Lastro) -> Row:
    """Whether search by meaning can be used, and what waits for it."""
    by_meaning = await lastro.embedding.search_by_meaning()
    if lastro.embedding.model is None:
        return ("embeddings", "warn", by_meaning.note or "")
    try:
        await lastro.embedding.load()
    except (EmbedderUnavailable, EmbeddingFailed) as error:
        return ("embeddings", "bad", f"{error.message} {error.hint}")
    state = await lastro.embeddings.state()
    lag = await lastro.embeddings.lag(with_later=True)
    waits = f"{output.number_of(lag.due, 'unit waits', 'units wait')}, the first for {lag.oldest_s:.0f} s" if lag.due else "nothing waits"
    if state is None:
        return ("embeddings", "ok", f"{lastro.embedding.model}; the service has not embedded anything yet; {waits}")
    return ("embeddings", "ok" if by_meaning.note is None else "warn", f"{by_meaning.note or state.model}; {waits}")


def _package(name: str) -> Row:
    try:
        return (name, "ok", version(name))
    except PackageNotFoundError:
        return (name, "bad", "not installed; run `make install`")
