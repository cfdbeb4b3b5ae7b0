"""The one place that builds Lastro's objects and hands them to each other."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from adapters.embedders.base import embedder_of
from adapters.registry import AdapterRegistry
from adapters.tokenizers import Tokenizers
from app.attachments.attachments import Attachments
from app.attachments.objects import objects_of
from app.attachments.sweeping import SweepingJob
from app.embedding import Embedding
from app.governance.crossings import Crossings
from app.governance.erasure import Erasure
from app.governance.ledger import BudgetLedger
from app.governance.quotas import Quotas
from app.governance.retention import RetentionJob, RetentionRules
from app.governance.tiering import TieringJob, TierRules
from app.governance.usage import UsageMeter
from app.governance.uses import Uses
from app.health import Health
from app.ingest import Ingest
from app.reembedding import Reembedding
from app.registry.registry import Registry
from app.registry.tokens import Tokens
from app.router.cache import AnswerCache
from app.router.pipeline import Router
from app.router.planner import Planner
from app.settings import EngineName, Settings
from app.strategies.concurrency import Concurrency
from app.strategies.retrieval import Retrieval
from app.strategies.runner import StrategyRunner
from app.strategies.scoring import Weights
from app.warmup import WARM_UP, warm
from graph.attachment_store import AttachmentStore
from graph.audit_store import AuditStore
from graph.connection import Database, connect
from graph.context_store import ContextStore
from graph.embedding_store import EmbeddingStore
from graph.engines.base import Engine
from graph.engines.embedded import EmbeddedEngine
from graph.engines.neo4j import GivenNeo4j
from graph.erasure_store import ErasureStore
from graph.lease_store import LeaseStore
from graph.ledger_store import LedgerStore
from graph.model.erasure import TombstoneKeys
from graph.policy_store import PolicyStore
from graph.quota_store import QuotaStore
from graph.registry_store import RegistryStore
from graph.retention_store import RetentionStore
from graph.schema import migrate
from graph.search_store import SearchStore
from graph.statements import Dialect
from graph.tenant_erasure_store import TenantErasureStore
from graph.tier_store import TierLimits, TierStore
from graph.unit_store import UnitStore
from graph.vector_index import VectorIndex
from graph.vector_store import VectorStore

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
    audit: AuditStore
    policies: PolicyStore
    crossings: Crossings
    quota_store: QuotaStore
    quotas: Quotas
    meter: UsageMeter
    ledger_store: LedgerStore
    ledger: BudgetLedger
    erasure: Erasure
    retention: RetentionRules
    retention_job: RetentionJob
    tier_store: TierStore
    uses: Uses
    tiering_job: TieringJob
    attachments: Attachments
    sweeping_job: SweepingJob
    cache: AnswerCache
    embeddings: EmbeddingStore
    embedding: Embedding
    reembedding: Reembedding
    vectors: VectorStore
    router: Router
    adapters: AdapterRegistry
    health: Health

    async def warm(self) -> None:
        """Plan the hot statements; once after the start, and again after the engine came back."""
        await warm(self.registry, self.ingest, self.router)

    async def warm_vectors(self) -> None:
        """The same for search by meaning, once the model is loaded."""
        scope = self.registry.local(WARM_UP, WARM_UP, session_id=WARM_UP)
        await self.vectors.warm(scope, await self.embedding.load())


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
            async with _tokens(settings) as tokens:
                lastro = _wire(settings, engine, database, secret, tokens)
                if warm_up:
                    await lastro.warm()
                async with aclosing(lastro.embedding), lastro.meter.job.running(), lastro.uses.job.running(), lastro.ledger.job.running():
                    yield lastro
        finally:
            await database.close()
    finally:
        await engine.stop()


@asynccontextmanager
async def _tokens(settings: Settings) -> AsyncGenerator[Tokens | None]:
    """Who checks JWTs; nobody, and nothing is loaded for it, where no issuer is set. The issuer is not asked before the first token comes."""
    if settings.oidc_issuer is None:
        yield None
        return
    from app.registry.oidc import OidcTokens  # noqa: PLC0415 (cryptography is loaded only where it is needed)

    tokens = OidcTokens(settings)
    try:
        yield tokens
    finally:
        await tokens.close()


def _wire(settings: Settings, engine: Engine, database: Database, secret: str, tokens: Tokens | None) -> Lastro:
    tokenizers = Tokenizers()
    fence_key = hmac.digest(bytes.fromhex(secret), b"fence", hashlib.sha256)
    adapters = AdapterRegistry(fence_key, tokenizers=tokenizers, profiles=settings.profiles)
    tombstones = TombstoneKeys(bytes.fromhex(secret))
    audit = AuditStore(database)
    quota_store = QuotaStore(database, audit)
    units = UnitStore(database, tombstones, quota_store)
    contexts = ContextStore(database)
    policies = PolicyStore(database, audit)
    registry = Registry(RegistryStore(database, audit), policies, tokens)
    meter = UsageMeter(quota_store)
    quotas = Quotas(quota_store, meter)
    crossings = Crossings(policies)
    ledger_store = LedgerStore(database)
    ledger = BudgetLedger(ledger_store, settings.ledger_keep_days)
    cache = AnswerCache(settings.answer_cache_ttl_s, settings.answer_cache_answers, settings.answer_cache_bytes)
    erasure_store = ErasureStore(database, audit, tombstones, quota_store)
    attachments = Attachments(
        AttachmentStore(database, quota_store),
        objects_of(settings.attachments, settings.data),
        most_bytes=settings.max_attachment_bytes,
        orphan_s=settings.attachments_orphan_s,
    )
    erasure = Erasure(erasure_store, TenantErasureStore(database, audit, tombstones), attachments, (meter.forget, ledger.forget))
    leases = LeaseStore(database)
    retention_store = RetentionStore(database, audit, erasure_store)
    retention = RetentionRules(retention_store, attachments)
    retention_job = RetentionJob(retention_store, leases, erasure_store, erasure, retention, registry.local, settings.retention_interval_s)
    tier_store = TierStore(database)
    uses = Uses(tier_store)
    rules = TierRules(settings.tiers_hot_age_s, settings.tiers_warm_age_s, TierLimits(settings.tiers_hot_units, settings.tiers_warm_units))
    tiering_job = TieringJob(tier_store, leases, registry.local, rules, settings.tiers_interval_s)
    sweeping_job = SweepingJob(attachments, leases, registry.local)
    embedder = embedder_of(settings.embedder)
    embeddings, vector_index = EmbeddingStore(database), VectorIndex(database)
    yields = database.statements.dialect is Dialect.EMBEDDED
    embedding = Embedding(embedder, embeddings, vector_index, leases, yields=yields)
    vectors = VectorStore(database, embedding.model)
    concurrency = Concurrency(settings.queries_at_once)
    return Lastro(
        settings=settings,
        engine=engine,
        database=database,
        registry=registry,
        ingest=Ingest(units, tokenizers, settings, quotas, embedding),
        units=units,
        audit=audit,
        policies=policies,
        crossings=crossings,
        quota_store=quota_store,
        quotas=quotas,
        meter=meter,
        ledger_store=ledger_store,
        ledger=ledger,
        erasure=erasure,
        retention=retention,
        retention_job=retention_job,
        tier_store=tier_store,
        uses=uses,
        tiering_job=tiering_job,
        attachments=attachments,
        sweeping_job=sweeping_job,
        cache=cache,
        embeddings=embeddings,
        embedding=embedding,
        reembedding=Reembedding(embedding, embeddings, vector_index, leases),
        vectors=vectors,
        router=Router(
            registry,
            Planner(adapters),
            StrategyRunner(
                contexts,
                units,
                tier_store,
                Retrieval(SearchStore(database), vectors, embedding, Weights.with_changes(settings.search_weights)),
                concurrency,
            ),
            units,
            adapters,
            quotas,
            crossings,
            uses,
            cache,
            ledger,
            concurrency,
        ),
        adapters=adapters,
        health=Health(engine, database, meter, retention_job, tiering_job, uses, ledger, embedding, sweeping_job.job),
    )
