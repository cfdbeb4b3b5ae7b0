"""Search by meaning with the bundled model: what a caller may see is found soon after it was written, whatever else there is (S4, S5, S10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from api.wire import read, stored
from conftest import Service, unit
from governance.store import Store, store_of
from integration.beside import service_beside, until

from app.registry.permissions import Action
from app.registry.registry import Credential
from graph.context_store import Window
from graph.model.scope import AuthorizedScope, Role
from graph.model.units import Kind
from graph.order_keys import microseconds
from graph.statements import Dialect
from graph.vector_store import Nearest, VectorStore

SAID = {
    "db-down": "O banco de dados caiu porque o disco encheu durante a madrugada.",
    "refund": "The customer asked for a refund of the annual plan.",
    "supplier": "A reunião com o fornecedor foi adiada para sexta-feira.",
    "login": "The login page rejects passwords with accented letters.",
    "card": "O pagamento do cliente foi recusado pelo cartão de crédito.",
    "backup": "The night backup was moved to another server.",
}
ASKED = {
    "Why did the database stop working?": "db-down",
    "O cliente quer o dinheiro de volta": "refund",
    "When do we meet the supplier?": "supplier",
    "senhas com acentos não funcionam": "login",
    "The client's credit card was declined": "card",
    "onde fica a cópia de segurança?": "backup",
}
SOON_S = 20.0
"""On a machine that is busy with the rest of the suite; docs/benchmarks.md has the real figure."""


@pytest.fixture(scope="module")
def meaning(service: Service) -> Iterator[Service]:
    """A service with the bundled model, on the engine of all tests."""
    with service_beside(service, embedder="bundled") as found:
        until(lambda: found.run(found.lastro.embedding.search_by_meaning()).on, 60, "the model was not loaded")
        yield found


@pytest.fixture
def client(meaning: Service, tenant: str) -> Iterator[httpx2.Client]:
    with meaning.client(meaning.key(tenant), session="session-1") as found:
        yield found


@pytest.fixture
def store(meaning: Service) -> Iterator[Store]:
    with store_of(meaning) as found:
        yield found


def scope_of(service: Service, client: httpx2.Client) -> AuthorizedScope:
    """What the caller behind a client may see, as its requests have it."""
    credential = Credential(client.headers["Authorization"], session_id=client.headers.get("Lastro-Session"))

    async def work() -> AuthorizedScope:
        registry = service.lastro.registry
        return registry.authorize(await registry.identify(credential), Action.READ_CONTEXT, credential)

    return service.run(work())


def embedded(store: Store, tenant: str, ids: Sequence[str]) -> None:
    """Wait until these units have their embeddings."""
    text = "MATCH (u:ContextUnit {tenant_id: $tenant}) WHERE u.id IN $ids AND u.embedding_model = 'usem3' RETURN count(u) AS n"
    until(lambda: store.rows(text, tenant=tenant, ids=list(ids))[0]["n"] == len(ids), SOON_S, "they were not embedded")


def vector_of(service: Service, question: str) -> list[float]:
    told = service.run(service.lastro.embedding.vector_of(question, 20))
    assert told.vector is not None, told.note
    return list(told.vector)


def nearest(
    service: Service, client: httpx2.Client, question: str, limit: int = 3, window: Window | None = None, by: VectorStore | None = None
) -> Nearest:
    vectors = by or service.lastro.vectors
    return service.run(vectors.nearest(scope_of(service, client), vector_of(service, question), window or Window(), limit, 20))


def ids(found: Nearest) -> list[str]:
    return [str(hit["id"]) for hit in found.hits]


def write_all(client: httpx2.Client, store: Store, tenant: str, **more: Any) -> None:
    stored(client, *[unit(unit_id, text, **more) for unit_id, text in SAID.items()])
    embedded(store, tenant, list(SAID))


def large_store(service: Service) -> VectorStore:
    """As if nobody could be compared one by one, so that the index is asked."""
    found = VectorStore(service.lastro.database, service.lastro.embedding.model)
    found._exact_most = 0  # pyright: ignore[reportPrivateUsage] (thousands of units would cost minutes)
    return found


def test_what_was_said_in_one_language_is_found_by_a_question_in_the_other(
    meaning: Service, client: httpx2.Client, stranger: httpx2.Client, tenant: str, store: Store
) -> None:
    stored(stranger, unit("db-down", SAID["db-down"]))
    write_all(client, store, tenant)
    by_index = large_store(meaning)
    for question, wanted in ASKED.items():
        found = nearest(meaning, client, question)
        assert ids(found)[0] == wanted, question
        assert (found.method, found.looked_at, found.complete) == ("exact", len(SAID), True)
        similarities = [hit["similarity"] for hit in found.hits]
        assert similarities == sorted(similarities, reverse=True)
        assert 0.2 < similarities[0] <= 1.0
        again = nearest(meaning, client, question, by=by_index)
        assert ids(again)[0] == wanted, question
        assert again.method.startswith("index")
        assert again.hits[0]["similarity"] == pytest.approx(similarities[0], abs=1e-4)
    same = nearest(meaning, client, SAID["refund"])
    assert same.hits[0]["similarity"] == pytest.approx(1.0, abs=1e-3), "the raw cosine, on every engine"
    hit = same.hits[0]
    assert (hit["kind"], hit["agent_id"], hit["session_id"], hit["superseder_ids"]) == ("observation", "agent-1", "session-1", [])
    assert "embedding" not in hit
    assert "content" not in hit


def test_nobody_finds_what_is_not_theirs(meaning: Service, client: httpx2.Client, tenant: str, other_tenant: str, store: Store) -> None:
    """Others of the tenant, other tenants, and other sessions of the same agent."""
    write_all(client, store, tenant)
    by_index = large_store(meaning)
    others = [
        meaning.client(meaning.key(tenant, "agent-2"), session="session-1"),
        meaning.client(meaning.key(tenant), session="session-2"),
        meaning.client(meaning.key(other_tenant), session="session-1"),
        meaning.client(meaning.key(other_tenant, role=Role.ADMIN)),
    ]
    vector = vector_of(meaning, SAID["card"])
    for other in others:
        with other:
            assert nearest(meaning, other, SAID["card"]).hits == []
            assert nearest(meaning, other, SAID["card"], by=by_index).hits == []
            scope = scope_of(meaning, other)
            assert meaning.run(meaning.lastro.vectors.similarities(scope, vector, list(SAID))) == {}
    with meaning.client(meaning.key(tenant, role=Role.ADMIN)) as admin:
        assert ids(nearest(meaning, admin, SAID["card"]))[0] == "card"
    scope = scope_of(meaning, client)
    near = meaning.run(meaning.lastro.vectors.similarities(scope, vector, [*SAID, "nothing"]))
    assert near.keys() == SAID.keys()
    assert max(near, key=lambda unit_id: near[unit_id]) == "card"
    assert near["card"] == pytest.approx(1.0, abs=1e-3)
    assert meaning.run(meaning.lastro.vectors.similarities(scope, vector, [])) == {}


def test_few_units_beside_many_are_all_found(meaning: Service, client: httpx2.Client, tenant: str, other_tenant: str, store: Store) -> None:
    """A small tenant beside a larger one, and an agent that may see little of a larger tenant, both full of what is asked for."""
    many = [unit(f"m{number}", f"The client's credit card number {number} was declined by the bank.") for number in range(120)]
    with (
        meaning.client(meaning.key(other_tenant), session="session-1") as larger,
        meaning.client(meaning.key(tenant, "talker"), session="session-1") as talker,
    ):
        for who in (larger, talker):
            stored(who, *many)
    write_all(client, store, tenant)
    embedded(store, tenant, [f"m{number}" for number in range(120)])
    embedded(store, other_tenant, [f"m{number}" for number in range(120)])
    question = "The client's credit card was declined"
    found = nearest(meaning, client, question, limit=len(SAID))
    assert ids(found)[0] == "card"
    assert sorted(ids(found)) == sorted(SAID)
    assert (found.method, found.looked_at) == ("exact", len(SAID))
    by_index = nearest(meaning, client, question, limit=len(SAID), by=large_store(meaning))
    assert sorted(ids(by_index)) == sorted(SAID), "240 nearer ones are passed over"
    assert by_index.complete
    cut = large_store(meaning)
    cut.most_fetched = 24
    told = nearest(meaning, client, question, limit=len(SAID), by=cut)
    dialect = meaning.lastro.database.statements.dialect
    if dialect is Dialect.EMBEDDED:
        assert sorted(ids(told)) == sorted(SAID), "it searches within what the caller may see"
    else:
        assert told.hits == [] or set(ids(told)) <= SAID.keys()
        assert not told.complete, "that a bound was met is said"


def test_the_window_holds(meaning: Service, client: httpx2.Client, tenant: str, store: Store, stranger: httpx2.Client) -> None:
    stored(stranger, unit("late", SAID["refund"], task_id="t", task_step=1))
    stored(client, unit("early", SAID["card"], task_id="t", task_step=1), unit("elsewhere", SAID["backup"], "decision"))
    between = microseconds(datetime.now(UTC))
    stored(client, unit("late", SAID["refund"], task_id="t", task_step=5))
    embedded(store, tenant, ["early", "elsewhere", "late"])
    by_index = large_store(meaning)
    for by in (None, by_index):
        question = SAID["refund"]
        assert ids(nearest(meaning, client, question, by=by))[0] == "late"
        assert sorted(ids(nearest(meaning, client, question, window=Window(task_id="t", step=4), by=by))) == ["early", "elsewhere"]
        assert sorted(ids(nearest(meaning, client, question, window=Window(as_of_us=between), by=by))) == ["early", "elsewhere"]
        assert ids(nearest(meaning, client, question, limit=1, by=by)) == ["late"]
        vectors, scope, vector = by or meaning.lastro.vectors, scope_of(meaning, client), vector_of(meaning, question)
        found = meaning.run(vectors.nearest(scope, vector, Window(), 3, 20, kinds=[Kind.DECISION]))
        assert ids(found) == ["elsewhere"]


def test_an_erased_unit_leaves_no_vector(
    meaning: Service, client: httpx2.Client, stranger: httpx2.Client, tenant: str, store: Store
) -> None:
    own = f"{SAID['card']} Para o cliente {tenant}."
    stored(client, unit("card", own), unit("refund", SAID["refund"]))
    stored(stranger, unit("card", SAID["card"]))
    embedded(store, tenant, ["card", "refund"])
    text = "MATCH (u:ContextUnit {tenant_id: $tenant}) WHERE u.id = 'card' RETURN u.embedding[0] AS first"
    first = store.rows(text, tenant=tenant)[0]["first"]
    whole = "MATCH (n) WHERE n.embedding[0] = $first RETURN count(n) AS n"
    assert store.rows(whole, first=first) == [{"n": 1}]
    stored(client, unit("waiting", own + " E espera."))
    for unit_id in ("card", "waiting"):
        assert client.delete(f"/v1/units/{unit_id}").status_code == 204
    for by in (None, large_store(meaning)):
        assert ids(nearest(meaning, client, own, limit=10, by=by)) == ["refund"]
    vector = vector_of(meaning, own)
    assert meaning.run(meaning.lastro.vectors.similarities(scope_of(meaning, client), vector, ["card", "refund"])).keys() == {"refund"}
    assert store.rows(whole, first=first) == [{"n": 0}]
    left = "MATCH (u:ContextUnit {tenant_id: $tenant}) WHERE u.embedding_due IS NOT NULL OR u.embedding_model IS NOT NULL RETURN u.id AS id"
    assert store.rows(left, tenant=tenant) == [{"id": "refund"}]


def test_readyz_and_the_receipts_note_tell_how_it_stands(
    meaning: Service, service: Service, client: httpx2.Client, stranger: httpx2.Client, tenant: str, store: Store
) -> None:
    stored(client, unit("numbers", "12 345 / 6"), unit("card", SAID["card"]))
    embedded(store, tenant, ["card"])
    text = "MATCH (u:ContextUnit {tenant_id: $tenant, id: 'numbers'}) RETURN u.embedding_due AS due, u.embedding AS embedding"
    assert store.rows(text, tenant=tenant) == [{"due": None, "embedding": None}], "without words there is no meaning"
    told = client.get("/readyz").json()
    assert told["embedding"] == "running"
    until(lambda: client.get("/readyz").json()["embedding_due"] == 0, SOON_S, "something waits for ever")
    assert told["embedding_lag_s"] < SOON_S
    assert stranger.get("/readyz").json()["embedding"] == "off"
    by_meaning = service.run(service.lastro.embedding.search_by_meaning())
    assert not by_meaning.on
    assert "No embedder is set" in (by_meaning.note or "")
    assert service.run(service.lastro.embedding.vector_of("x", 1)).vector is None
    assert read(client, "card")["content"] == SAID["card"]
