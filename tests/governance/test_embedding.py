"""The job that embeds: nothing is lost, nothing wrong is stored, and a model that misbehaves stops only itself (S4, S10)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import threading
import uuid
from collections.abc import Awaitable, Iterator, Sequence
from concurrent.futures import wait
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import Service
from governance.store import Store, store_of
from integration.beside import until
from neo4j.exceptions import TransientError
from typer.testing import CliRunner

from app import embedder_thread
from app.cli.main import app
from app.embedding import Embedding
from app.ingest import Ingest
from app.reembedding import Reembedding
from app.settings import load_settings
from graph.context_store import Window
from graph.embedding_store import EmbeddingStore
from graph.lease_store import LeaseStore
from graph.model.errors import CommandRefused, Conflict, DatabaseUnavailable, EmbedderUnavailable, SettingsInvalid
from graph.model.scope import AuthorizedScope
from graph.model.units import ContextUnit, Kind
from graph.model.vectors import EmbeddingPhase, EmbeddingState
from graph.order_keys import microseconds
from graph.vector_index import VectorIndex
from graph.vector_store import VectorStore

DIMENSIONS = 16
MODEL = "made-up"


class MadeUp:
    """An embedder of this test: a vector by the text's hash, and misbehaviour where a text asks for it."""

    def __init__(self, name: str = MODEL, dimensions: int = DIMENSIONS) -> None:
        self.name = name
        self.dimensions = dimensions
        self.asked: list[str] = []
        self.away = False
        self.released = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        if self.away:
            raise EmbedderUnavailable
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        if "RAISES" in text:
            raise ZeroDivisionError(text)
        if "HANGS" in text:
            self.released.wait(60)
        if "WRONG-LENGTH" in text:
            return [1.0]
        if "NOT-A-NUMBER" in text:
            return [math.nan] * self.dimensions
        if "ENDLESS" in text:
            return [math.inf] * self.dimensions
        if "ZERO" in text:
            return [0.0] * self.dimensions
        digest = hashlib.shake_128(text.encode()).digest(self.dimensions)
        return [float(byte) - 127.5 for byte in digest]


class Desk:
    """A job of this test's own, with what its tenant writes."""

    def __init__(self, service: Service, store: Store, tenant: str) -> None:
        self.service = service
        self.store = store
        self.tenant = tenant
        self.embedder = MadeUp()
        self.embeddings = EmbeddingStore(service.lastro.database)
        self.lease = f"test {uuid.uuid4().hex}"
        self.job = self.replica()
        self._released: list[MadeUp] = [self.embedder]

    def replica(self, embedder: MadeUp | None = None, *, embed_s: float = 20, lease: str | None = None) -> Embedding:
        """A job as another replica has it."""
        database = self.service.lastro.database
        return Embedding(
            embedder or self.embedder,
            self.embeddings,
            VectorIndex(database),
            LeaseStore(database),
            lease=lease or self.lease,
            embed_s=embed_s,
        )

    def reembedding(self, job: Embedding | None = None) -> Reembedding:
        database = self.service.lastro.database
        return Reembedding(job or self.job, self.embeddings, VectorIndex(database), LeaseStore(database))

    def run(self, work: Awaitable[Any]) -> Any:
        async def awaited() -> Any:
            return await work

        return self.service.run(awaited())

    def scope(self, tenant: str | None = None, session: str | None = None) -> AuthorizedScope:
        return self.service.lastro.registry.local(tenant or self.tenant, "operator", session_id=session)

    def write(self, *said: tuple[str, str], tenant: str | None = None, by: Embedding | None = None) -> None:
        """Write units as a service does whose embedder this is. Its job does not run."""
        lastro = self.service.lastro
        ingest = Ingest(lastro.units, lastro.adapters.tokenizers, self.service.settings, lastro.quotas, by or self.job)
        scope = self.scope(tenant)
        units = [ContextUnit(id=unit_id, kind=Kind.OBSERVATION, content=text) for unit_id, text in said]
        self.run(lastro.registry.ensure_tenant(scope))
        assert self.run(ingest.write(scope, units)).written == len(said)

    def drain(self, job: Embedding | None = None) -> None:
        """Until nothing waits that could be done now."""

        async def work() -> None:
            while await (job or self.job).once():
                pass

        self.run(work())

    def told(self, tenant: str | None = None) -> dict[str, tuple[bool, bool, str | None]]:
        """By unit: whether it has an embedding, whether it waits, and why it has none."""
        text = (
            "MATCH (u:ContextUnit {tenant_id: $tenant}) RETURN u.id AS id, u.embedding IS NOT NULL AS has, "
            "u.embedding_due IS NOT NULL AS waits, u.embedding_failed AS failed"
        )
        return {row["id"]: (row["has"], row["waits"], row["failed"]) for row in self.store.rows(text, tenant=tenant or self.tenant)}

    def nearest(self, text: str, limit: int = 10, *, tenant: str | None = None, model: str = MODEL) -> list[str]:
        vectors = VectorStore(self.service.lastro.database, model)
        vector = MadeUp()._vector(text)  # pyright: ignore[reportPrivateUsage]
        length = math.hypot(*vector)
        found = self.run(vectors.nearest(self.scope(tenant), [value / length for value in vector], Window(), limit, 20))
        return [str(hit["id"]) for hit in found.hits]


def silent(step: str, done: int, total: int | None) -> None:
    """Progress that nobody looks at."""


HAS, WAITS, NEITHER = (True, False, None), (False, True, None), (False, False, None)


@pytest.fixture(scope="module")
def emptied(service: Service) -> Iterator[None]:
    """The graph without any embedding, for a model of these tests; and again at their end."""

    def empty(store: Store) -> None:
        store.rows("MATCH (u:ContextUnit) WHERE u.embedding IS NOT NULL REMOVE u.embedding, u.embedding_model RETURN count(u) AS n")
        store.rows("MATCH (u:ContextUnit) WHERE u.embedding_due > '' REMOVE u.embedding_due RETURN count(u) AS n")
        store.rows("MATCH (s:EmbeddingState) DELETE s RETURN count(*) AS n")
        service.run(VectorIndex(service.lastro.database).drop())

    with store_of(service) as store:
        empty(store)
        store.rows(
            "CREATE (s:EmbeddingState {id: 'lastro', model: $model, dimensions: $dimensions, phase: 'complete', marked_to: ''}) RETURN s.id AS id",
            model=MODEL,
            dimensions=DIMENSIONS,
        )
        yield
        empty(store)


@pytest.fixture
def desk(service: Service, emptied: None, tenant: str) -> Iterator[Desk]:
    with store_of(service) as store:
        found = Desk(service, store, tenant)
        yield found
        for embedder in found._released:  # pyright: ignore[reportPrivateUsage]
            embedder.released.set()
        found.run(found.job.aclose())
        store.rows("MATCH (u:ContextUnit) WHERE u.embedding_due > '' REMOVE u.embedding_due RETURN count(u) AS n")
        store.rows(
            "MATCH (s:EmbeddingState) SET s.model = $model, s.dimensions = $dimensions, s.phase = 'complete', s.marked_to = '' RETURN s.id AS id",
            model=MODEL,
            dimensions=DIMENSIONS,
        )


def test_what_waits_is_embedded_in_its_turn_whatever_tenant(desk: Desk, other_tenant: str) -> None:
    desk.write(("a", "First words."), ("b", "12 345"), ("c", "Third words."))
    desk.write(("a", "Words of others."), tenant=other_tenant)
    assert desk.told() == {"a": WAITS, "b": NEITHER, "c": WAITS}, "without words there is no meaning"
    assert desk.run(desk.embeddings.lag()).due == 3
    assert desk.run(desk.embeddings.lag()).oldest_s < 60
    desk.drain()
    assert desk.embedder.asked == ["First words.", "Third words.", "Words of others."]
    assert desk.told() == {"a": HAS, "b": NEITHER, "c": HAS}
    assert desk.told(other_tenant) == {"a": HAS}
    assert desk.run(desk.embeddings.lag()).due == 0
    assert desk.nearest("Third words.")[0] == "c"
    assert desk.nearest("Third words.", tenant=other_tenant) == ["a"]
    assert desk.run(desk.job.once()) is False


def test_a_crash_between_embedding_and_writing_loses_nothing(desk: Desk, other_tenant: str) -> None:
    desk.write(("a", "First words."), ("b", "Second words."))
    desk.write(("a", "Words of others."), tenant=other_tenant)

    async def killed() -> None:
        async def crash(*_: object) -> int:
            raise DatabaseUnavailable

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(desk.embeddings, "write", crash)
            with pytest.raises(DatabaseUnavailable):
                await desk.job.once()

    desk.run(killed())
    assert desk.told() == {"a": WAITS, "b": WAITS}
    assert desk.told(other_tenant) == {"a": WAITS}
    # The one that died holds the lease still; another waits for its end, and goes on.
    second = desk.replica()
    assert desk.run(second.once()) is False
    assert desk.store.rows("MATCH (l:Lease {id: $id}) SET l.held_until_ms = 0 RETURN l.id AS id", id=desk.lease)
    desk.drain(second)
    assert desk.told() == {"a": HAS, "b": HAS}
    assert desk.told(other_tenant) == {"a": HAS}


def test_two_at_work_do_no_harm(desk: Desk, other_tenant: str) -> None:
    desk.write(*[(f"u{number}", f"Words {number}.") for number in range(40)])
    desk.write(("u1", "Words of others."), tenant=other_tenant)
    others = [desk.replica(lease=f"test {uuid.uuid4().hex}") for _ in range(2)]

    async def both() -> None:
        async def drain(job: Embedding) -> None:
            while await job.once():
                pass

        await asyncio.gather(*(drain(job) for job in others))

    desk.run(both())
    assert set(desk.told().values()) == {HAS}
    assert desk.told(other_tenant) == {"u1": HAS}


def test_wrong_vectors_are_refused_one_by_one(desk: Desk, other_tenant: str) -> None:
    wrong = ["WRONG-LENGTH", "NOT-A-NUMBER", "ENDLESS", "ZERO"]
    desk.write(("good", "Good words."), *[(name.lower(), f"Some {name} words.") for name in wrong])
    desk.write(("good", "Words of others."), tenant=other_tenant)
    desk.drain()
    told = desk.told()
    assert told.pop("good") == HAS
    assert set(told.values()) == {(False, True, "vector_unusable")}, "they are tried again later"
    assert desk.told(other_tenant) == {"good": HAS}
    assert desk.run(desk.embeddings.lag()).due == 0, "their time has not come"
    assert desk.run(desk.embeddings.lag(with_later=True)).due == len(wrong)


def test_a_text_that_makes_the_model_raise_stops_no_other(desk: Desk, other_tenant: str, caplog: pytest.LogCaptureFixture) -> None:
    desk.write(("before", "Words before."), ("bad", "It RAISES a SECRET-WORD."), ("after", "Words after."))
    desk.write(("before", "Words of others."), tenant=other_tenant)
    for again in range(4):
        desk.drain()
        failed = desk.told()
        assert (failed["before"], failed["after"]) == (HAS, HAS)
        assert failed["bad"] == (False, again < 3, "embedding_failed")
        # Its time has come.
        text = "MATCH (u:ContextUnit {tenant_id: $tenant, id: 'bad'}) WHERE u.embedding_due IS NOT NULL SET u.embedding_due = $due RETURN u.id AS id"
        due = f"{microseconds(datetime.now(UTC)):018d} {desk.tenant} bad"
        assert bool(desk.store.rows(text, tenant=desk.tenant, due=due)) == (again < 3)
    assert sum("RAISES" in text for text in desk.embedder.asked) == 5, "once with the others, then four times by itself"
    assert desk.told(other_tenant) == {"before": HAS}
    assert "SECRET-WORD" not in caplog.text
    assert desk.job.problem is None


def test_a_text_that_hangs_is_given_up(desk: Desk, other_tenant: str) -> None:
    job = desk.replica(embed_s=1.0)
    desk.write(("before", "Words before."), ("bad", "It HANGS."), ("after", "Words after."))
    desk.write(("before", "Words of others."), tenant=other_tenant)
    desk.drain(job)
    assert desk.told() == {"before": HAS, "bad": (False, True, "embedder_hangs"), "after": HAS}
    assert desk.told(other_tenant) == {"before": HAS}
    desk.run(job.load())
    asked = desk.run(job.vector_of("It HANGS.", 0.2))
    assert asked.vector is None
    assert "in time" in asked.note
    assert desk.run(job.vector_of("Some words.", 0.3)).vector is None, "its thread is taken, for a while"


def test_a_model_that_hangs_whatever_it_is_given_takes_few_threads(desk: Desk, other_tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder_thread, "MOST_HANGING", 2)
    job = desk.replica(embed_s=0.5)
    desk.write(*[(f"u{number}", "It HANGS.") for number in range(4)])
    desk.write(("u1", "Words of others."), tenant=other_tenant)
    with pytest.raises(EmbedderUnavailable, match="hangs"):
        desk.drain(job)
    assert list(desk.told().values()).count(WAITS) >= 3, "no more are blamed for it"
    desk.embedder.released.set()
    given_up = job._documents._given_up  # pyright: ignore[reportPrivateUsage]
    until(lambda: not any(thread.is_alive() for thread in given_up), 10, "they did not come back")
    desk.drain(job)
    assert list(desk.told().values()).count(HAS) >= 3
    assert desk.told(other_tenant) == {"u1": HAS}


def test_a_model_that_is_away_is_waited_for(desk: Desk, other_tenant: str) -> None:
    desk.write(("a", "Some words."))
    desk.write(("a", "Words of others."), tenant=other_tenant)
    desk.embedder.away = True
    with pytest.raises(EmbedderUnavailable):
        desk.drain()
    assert desk.told() == {"a": WAITS}, "no try counts"

    async def beside() -> tuple[str, str | None]:
        async with desk.job.running():
            await asyncio.sleep(0.3)
            told = desk.job.state, desk.job.problem
            desk.embedder.away = False
            for _ in range(200):
                if desk.told()["a"] == HAS and desk.told(other_tenant)["a"] == HAS:
                    break
                await asyncio.sleep(0.05)
            return told

    assert desk.run(beside()) == ("waiting", "embedder_unavailable")
    assert desk.told() == {"a": HAS}


def test_a_unit_that_is_erased_meanwhile_gets_nothing(desk: Desk, other_tenant: str) -> None:
    """Both by hand: an erasure that is not committed yet when the embedding is about to be written, and one that came before."""
    desk.write(("a", "Some words."), ("b", "More words."), ("c", "Words that stay."))
    desk.write(("a", "Words of others."), tenant=other_tenant)
    due = {item.id: item for item in desk.run(desk.embeddings.due(10)) if item.tenant_id == desk.tenant}
    gone = "MATCH (u:ContextUnit {tenant_id: $tenant, id: $id}) SET u = {tenant_id: $tenant, id: $shell_id} RETURN u.id AS id"
    desk.store.rows(gone, tenant=desk.tenant, id="b", shell_id="erased b")
    vector = [1.0] + [0.0] * (DIMENSIONS - 1)
    driver, database = desk.store._driver, desk.store._database  # pyright: ignore[reportPrivateUsage]
    with driver.session(database=database) as session, session.begin_transaction() as erasing:  # pyright: ignore[reportUnknownMemberType]
        erasing.run(gone, tenant=desk.tenant, id="a", shell_id="erased a").consume()
        work = desk.embeddings.write(MODEL, [(due[name], vector) for name in ("a", "b", "c")])
        writing = asyncio.run_coroutine_threadsafe(work, desk.service.loop)
        # The embedded engine locks nothing before the commit, so there it may be through already.
        wait([writing], 0.7)
        try:
            erasing.commit()
        except TransientError:
            # There the one that commits first goes before, and the other runs again, as ours do.
            desk.store.rows(gone, tenant=desk.tenant, id="a", shell_id="erased a")
    assert writing.result(30) in {1, 2}
    told = desk.told()
    assert told["c"] == HAS
    assert {told["erased a"][0], told["erased b"][0]} == {False}
    assert desk.told(other_tenant) == {"a": WAITS}


def test_another_model_is_noticed_and_reembedding_goes_on_after_a_kill(desk: Desk, other_tenant: str) -> None:
    """The tenants are named so that a run that broke off just before them has only these left: the suite's other units would take minutes."""
    first, second = f"~~{desk.tenant}", f"~~{other_tenant}"
    desk.tenant = first
    desk.write(*[(f"u{number}", f"Words {number}.") for number in range(5)])
    desk.write(("u1", "Words of others."), tenant=second)
    desk.drain()
    new = MadeUp("made-up-2", 24)
    job = desk.replica(new, lease=f"test {uuid.uuid4().hex}")
    told = desk.run(job.search_by_meaning())
    assert not told.on
    assert "model was changed" in told.note
    assert desk.run(job.once()) is False
    assert job.problem == "embedder_changed"
    desk.write(("later", "Later words."), by=job)
    assert desk.run(job.once()) is False, "it does not touch a graph of another model"
    assert desk.run(desk.job.search_by_meaning()).on

    # As a run leaves it that was killed after it had marked what sorts before.
    state = EmbeddingState("made-up-2", 24, EmbeddingPhase.MARKING, marked_to="~~")
    assert desk.run(desk.embeddings.change(desk.run(desk.embeddings.state()), state))
    desk.run(VectorIndex(desk.service.lastro.database).drop())
    desk.store.rows(
        "MATCH (u:ContextUnit) WHERE u.embedding IS NOT NULL AND NOT u.tenant_id STARTS WITH '~~' REMOVE u.embedding RETURN count(u) AS n"
    )
    desk.job.forget_state()
    assert not desk.run(desk.job.search_by_meaning()).on
    steps: list[tuple[str, int, int | None]] = []

    class Killed(Exception):
        pass

    def kill(step: str, done: int, total: int | None) -> None:
        steps.append((step, done, total))
        if step == "embedding":
            raise Killed

    with pytest.raises(Killed):
        desk.run(desk.reembedding(job).run(anew=False, on_progress=kill))
    assert {waits for _, waits, _ in desk.told().values()} == {True}
    assert desk.run(desk.embeddings.state()).phase is EmbeddingPhase.EMBEDDING
    assert not desk.run(job.search_by_meaning()).on, "not before all is done"
    with pytest.raises(Conflict, match="Another"):
        desk.run(desk.reembedding(job).run(anew=False, on_progress=silent))
    assert desk.store.rows("MATCH (l:Lease {id: 'reembedding'}) SET l.held_until_ms = 0 RETURN l.id AS id")
    report = desk.run(desk.reembedding(job).run(anew=False, on_progress=silent))
    assert (report.model, report.dimensions, report.resumed, report.embedded, report.put_off) == ("made-up-2", 24, True, 7, 0)
    assert set(desk.told().values()) == {HAS}
    assert desk.told(second) == {"u1": HAS}
    assert desk.run(desk.embeddings.state()) == EmbeddingState("made-up-2", 24, EmbeddingPhase.COMPLETE)
    assert desk.run(job.search_by_meaning()).note is None
    sizes = desk.store.rows("MATCH (u:ContextUnit {tenant_id: $tenant}) RETURN DISTINCT size(u.embedding) AS n", tenant=first)
    assert sizes == [{"n": 24}]
    desk.run(VectorIndex(desk.service.lastro.database).drop())
    desk.store.rows("MATCH (u:ContextUnit) WHERE u.embedding IS NOT NULL REMOVE u.embedding, u.embedding_model RETURN count(u) AS n")


def test_gaps_are_noted_and_filled(desk: Desk, other_tenant: str) -> None:
    """Units that were written without an embedder."""
    first, second = f"~~~{desk.tenant}", f"~~~{other_tenant}"
    desk.tenant = first
    without = Embedding(None, desk.embeddings, VectorIndex(desk.service.lastro.database), LeaseStore(desk.service.lastro.database))
    desk.write(("with", "Some words."))
    desk.write(("without", "More words."), by=without)
    desk.write(("without", "Words of others."), tenant=second, by=without)
    assert (without.state, without.embeds, without.model) == ("off", False, None)
    assert desk.run(without.once()) is False
    with pytest.raises(CommandRefused, match="No embedder"):
        desk.run(desk.reembedding(without).run(anew=False, on_progress=silent))
    desk.drain()
    assert desk.told() == {"with": HAS, "without": NEITHER}
    told = desk.run(desk.job.search_by_meaning())
    assert told.on
    assert "without an embedder" in told.note
    state = desk.run(desk.embeddings.state())
    assert desk.run(desk.embeddings.change(state, EmbeddingState(MODEL, DIMENSIONS, EmbeddingPhase.GAPS, marked_to="~~~")))
    report = desk.run(desk.reembedding().run(anew=False, on_progress=silent))
    assert (report.marked, report.embedded) == (2, 2)
    assert desk.told() == {"with": HAS, "without": HAS}
    assert desk.told(second) == {"without": HAS}
    assert desk.run(desk.job.search_by_meaning()).note is None
    assert desk.embedder.asked.count("Some words.") == 1, "what has its embedding keeps it"


def test_the_command_does_it(
    service: Service, desk: Desk, tmp_path: Path, tenant: str, other_tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the bundled model: on Neo4j beside the service, on the embedded engine with a store of its own."""
    monkeypatch.setenv("LASTRO_EMBEDDER", "bundled")
    place = ["--data", str(tmp_path)]
    if service.engine_name != "embedded":
        address = service.run(service.lastro.engine.start())
        place = ["--engine", "neo4j"]
        for name, value in (("URI", address.uri), ("USER", address.user), ("PASSWORD", address.password)):
            monkeypatch.setenv(f"LASTRO_NEO4J_{name}", value)
        desk.tenant = f"~~~~{tenant}"
        without = Embedding(None, desk.embeddings, VectorIndex(service.lastro.database), LeaseStore(service.lastro.database))
        desk.write(("a", "Some words."), ("b", "More words."), by=without)
        state = desk.run(desk.embeddings.state())
        assert desk.run(desk.embeddings.change(state, EmbeddingState("usem3", 512, EmbeddingPhase.GAPS, marked_to="~~~~")))
    told = CliRunner().invoke(app, ["reembed", *place, "--json"])
    assert told.exit_code == 0, (told.output, told.exception)
    report = json.loads(told.stdout)
    wanted = 0 if service.engine_name == "embedded" else 2
    assert (report["model"], report["dimensions"], report["marked"], report["embedded"]) == ("usem3", 512, wanted, wanted)
    if wanted:
        assert desk.told() == {"a": HAS, "b": HAS}
        told = CliRunner().invoke(app, ["doctor", *place, "--json"])
        checks = {row["check"]: row for row in json.loads(told.stdout)["checks"]}
        assert checks["embeddings"]["state"] == "ok", checks["embeddings"]
        assert "usem3" in checks["embeddings"]["found"]
        desk.run(VectorIndex(service.lastro.database).drop())
        desk.store.rows("MATCH (u:ContextUnit) WHERE u.embedding IS NOT NULL REMOVE u.embedding, u.embedding_model RETURN count(u) AS n")
    monkeypatch.setenv("LASTRO_EMBEDDER", "word2vec")
    with pytest.raises(SettingsInvalid, match="LASTRO_EMBEDDER"):
        load_settings()
