"""Whether the service can do its work, asked of the database itself."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from app.background import Background
from app.embedding import Embedding
from app.governance.ledger import BudgetLedger
from app.governance.retention import RetentionJob
from app.governance.tiering import TieringJob
from app.governance.usage import UsageMeter
from app.governance.uses import Uses
from graph.connection import Database
from graph.engines.base import Engine
from graph.model.errors import LastroError

READY_DEADLINE_S = 1.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """What /readyz says. ``problem`` is a stable code, or None when ready."""

    ready: bool
    engine: str
    server: str
    ms: float
    problem: str | None
    retention: str = "off"
    """The background job: ``running``, ``stopped`` when it died, or ``off`` in a command. A service without it still answers."""
    usage: str = "off"
    """The same for writing usage counts down; limits do not depend on it."""
    ledger: str = "off"
    """The same for the token budget ledger."""
    tiers: str = "off"
    """The same for moving units between tiers; answers do not depend on it."""
    attachments: str = "off"
    """The same for removing originals that nobody names; reading and storing them does not depend on it."""
    embedding: str = "off"
    """The same for giving units their embeddings, and ``waiting`` while something keeps it from that; units are found by their words."""
    embedding_due: int = 0
    """Units that wait for their embedding, counted up to 10,000; read every few seconds."""
    embedding_lag_s: float = 0.0
    """How long the first of them has waited, seconds."""


class Health:
    """Asks the engine and the database."""

    def __init__(
        self,
        engine: Engine,
        database: Database,
        meter: UsageMeter,
        retention: RetentionJob,
        tiering: TieringJob,
        uses: Uses,
        ledger: BudgetLedger,
        embedding: Embedding,
        attachments: Background | None = None,
    ) -> None:
        self._attachments = attachments
        self._embedding = embedding
        self._retention = retention
        self._ledger = ledger
        self._tiering = tiering
        self._uses = uses
        self._engine = engine
        self._meter = meter
        self._database = database

    async def readiness(self) -> Readiness:
        """Asks the database for an answer within a second; never raises for a database that is down."""
        began = monotonic()
        problem = None if self._engine.alive else "engine_stopped"
        if problem is None:
            try:
                await self._database.read("service/ping", deadline_s=READY_DEADLINE_S)
            except LastroError as error:
                problem = error.code
        took_ms = round((monotonic() - began) * 1000, 1)
        return Readiness(
            problem is None,
            self._engine.name,
            self._database.agent,
            took_ms,
            problem,
            retention=self._retention.job.state,
            usage=self._meter.job.state,
            # Without what was used, tiers would move by age alone.
            tiers="stopped" if self._uses.job.state == "stopped" else self._tiering.job.state,
            ledger=self._ledger.job.state,
            attachments="off" if self._attachments is None else self._attachments.state,
            embedding=self._embedding.state,
            embedding_due=self._embedding.lag.due,
            embedding_lag_s=round(self._embedding.lag.oldest_s, 1),
        )
