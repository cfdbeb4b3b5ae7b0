"""Every statement as the loader gives it to an engine: its columns, its plan, its warnings, and that it stays within its tenant."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import neo4j
import pytest
from api.wire import call, result, stored
from conftest import Service, edge, unit

from app.governance.ledger import LedgerItem
from app.governance.quota_operations import TenantQuotas
from app.registry.grants import compiled
from app.registry.permissions import Action
from app.registry.policy_operations import RegistryPolicies
from graph.access import access_of
from graph.context_store import NO_DIRECTION
from graph.model.audit import AuditAction
from graph.model.erasure import TenantErasure
from graph.model.policy import PolicyRequest, Team
from graph.model.quota import QuotaLimits, Subject, SubjectType, UsageQuery
from graph.model.retention import RetainedKind, Retention, RetentionRule
from graph.model.scope import AuthorizedScope, Principal, Role
from graph.model.units import Kind, Scope
from graph.order_keys import FOREVER_US, MAX_STEP, microseconds
from graph.search_store import text_index
from graph.statements import Dialect, Mode, Row, Statement, load_all
from graph.tier_store import TierLimits, Use
from graph.unit_rows import as_datetime
from graph.vector_index import VectorIndex, index_name

NAMES = sorted({item.name for item in load_all() if item.mode in {Mode.READ, Mode.WRITE}})
FOUND = ("units/", "context/", "search/", "registry/", "policies/list", "policies/read", "quotas/", "ledger/", "audit/", "tiers/read")
"""Statements for which `tenants` has what they look for; the others are seen to find something by the tests of what they are for."""
WRITES = sorted({item.name for item in load_all() if item.mode is Mode.WRITE and item.tenant_scoped})
NOW = "2026-03-04T08:06:07-03:00"
ALWAYS_TOLD = {"00000", "00001", "02000"}
"""Status of every success, with or without rows, or without a result."""
SCANS_ALLOWED: dict[str, str] = {
    "erasure/delete_other_nodes": "the rest of an erased tenant, whatever its labels",
    "erasure/scan_for_tenant": "its certificate says that every node was looked at",
}
"""Statements that may scan, with the reason."""
ANY_VALUE: dict[str, Any] = {"str": "x", "int": 1, "float": 0.5, "bool": False, "list[str]": ["x"], "list[dict]": [], "dict": {}}
"""For parameters that no row depends on."""
WAS_COLD = (
    "MATCH (u:ContextUnit {tenant_id: $tenant, id: 'limit'}) SET u.embedding = $vector, u.embedding_model = 'x' "
    "SET u.cold_embedding = $vector, u.cold_embedding_model = 'x' REMOVE u.embedding, u.embedding_model RETURN u.id AS id"
)
WAITED = (
    "MATCH (u:ContextUnit {tenant_id: $tenant, id: 'limit'}) SET u.embedding_due = 'x', u.embedding_tries = 0, u.embedding_failed = 'x', u.asks = true "
    "CREATE (s:EmbeddingState {id: $tenant, model: 'x', dimensions: 1, phase: 'x', marked_to: '', changes: 0}) "
    "REMOVE u.embedding_due, u.embedding_tries, u.embedding_failed, u.asks DELETE s RETURN u.id AS id"
)
"""What a unit has while it waits for its embedding, and the state of another installation: Neo4j warns of names that nothing ever had."""
MOVES = "MATCH (u:ContextUnit {tenant_id: $tenant}) WHERE u.id IN ['rich', 'newer'] RETURN u.id AS id, u.tier_age AS tier_age"
WEIGHTS = {name.upper(): 1.0 for name in ("dependency", "provenance", "supersession", "causation")}


class Prompt:
    """The driver itself, beside the gateway: plans and keys are not the gateway's business."""

    def __init__(self, service: Service) -> None:
        address = service.run(service.lastro.engine.start())
        self.database = address.database
        self.statements = service.lastro.database.statements
        self.driver = neo4j.GraphDatabase.driver(address.uri, auth=(address.user, address.password))  # pyright: ignore[reportUnknownMemberType]

    @property
    def embedded(self) -> bool:
        return self.statements.dialect is Dialect.EMBEDDED

    def explain(self, statement: Statement, values: dict[str, Any]) -> tuple[list[str], neo4j.ResultSummary]:
        with self.driver.session(database=self.database) as session:  # pyright: ignore[reportUnknownMemberType]
            asked = neo4j.Query("EXPLAIN " + statement.text)  # type: ignore[arg-type]
            found = session.run(asked, statement.bind(values))
            return list(found.keys()), found.consume()

    def run(self, text: str, values: dict[str, Any], *, keep: bool = True) -> tuple[list[str], list[Row]]:
        """Columns and rows, in one transaction; undone unless it is to be kept."""
        with self.driver.session(database=self.database) as session, session.begin_transaction() as transaction:  # pyright: ignore[reportUnknownMemberType]
            found = transaction.run(text, values)  # type: ignore[arg-type]
            keys = list(found.keys())
            rows = [record.data() for record in found]
            if keep:
                transaction.commit()
            else:
                transaction.rollback()
            return keys, rows

    def export(self, tenant: str, *, usage: bool = True) -> list[str]:
        """Everything of a tenant: nodes, properties, and edges to and from wherever. ``usage``: also what the service writes down by itself."""
        text = (
            "MATCH (n) WHERE n.tenant_id = $tenant AND ($usage OR NOT n:UsagePeriod) RETURN labels(n) AS labels, properties(n) AS told, "
            "[(n)-[r]->(m) | [type(r), m.tenant_id, m.id]] AS away, [(n)<-[r]-(m) | [type(r), m.tenant_id, m.id]] AS here"
        )
        _, rows = self.run(text, {"tenant": tenant, "usage": usage})
        return sorted(str({name: told(value) for name, value in row.items()}) for row in rows)


def told(value: Any) -> Any:
    """A value in an order and form that compare."""
    if isinstance(value, dict):
        return {name: told(inner) for name, inner in sorted(value.items())}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return sorted(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    return as_datetime(value).isoformat() if hasattr(value, "to_native") else value


@pytest.fixture(scope="module")
def prompt(service: Service) -> Iterator[Prompt]:
    found = Prompt(service)
    yield found
    found.driver.close()


@pytest.fixture(scope="module")
def tenants(service: Service, prompt: Prompt) -> tuple[str, str]:
    """Two tenants with units of equal ids, which hold every property and edge that there is."""
    made = f"both-{uuid.uuid4().hex[:8]}-a", f"both-{uuid.uuid4().hex[:8]}-b"
    for tenant in made:
        key = service.key(tenant, role=Role.PUBLISHER)
        operator = service.lastro.registry.local(tenant, "operator")
        service.run(service.lastro.registry.rotate_key(operator, service.key(tenant).split("_")[1], overlap=timedelta(hours=1)))
        with service.client(key, session="session-1", model="gpt-5.2", organization="o", assessment="s") as client:
            stored(
                client,
                unit("limit", "Never restart it by day.", "constraint", task_id="task-1", trust="normative"),
                call("call", 1, task_id="task-1"),
                result("result", "call", 1, "It is slow at corp.quux.internal.", task_id="task-1"),
                unit(
                    "rich",
                    task_id="task-1",
                    actor="Ana",
                    provenance=[{"source": "a book", "uri": "https://example.org/book"}],
                    relevance_score=0.5,
                    labels=["pii"],
                    attachments=[{"uri": "file:///scan.png", "media_type": "image/png", "sha256": "0" * 64}],
                    relations=[edge("limit", "dependency"), edge("result"), edge("call", "provenance")],
                ),
                unit("newer", kind="correction", task_id="task-1", tier="warm", relations=[edge("rich", "supersession")]),
            )
            scope = service.lastro.registry.local(tenant, "operator")
            policies = RegistryPolicies(service.lastro.registry, service.lastro.policies, service.lastro.units, scope)
            service.run(policies.create_policy(PolicyRequest(kinds=[Kind.DECISION])))
            service.run(policies.save_team(Team(id="x", agents=["agent-1"])))
            quotas = TenantQuotas(service.lastro.quota_store, service.lastro.quotas, service.lastro.meter, scope)
            limits = QuotaLimits(units=1_000, bytes=1_000_000, requests=1_000, tokens=1_000_000, window_s=60)
            service.run(quotas.set_quota(Subject(SubjectType.TENANT, tenant), limits, reason="a trial"))
            service.run(service.lastro.quotas.admit(scope, Action.READ_UNITS))
            service.run(quotas.usage(UsageQuery()))  # so that what was counted is written down
            service.run(service.lastro.policies.record_crossing(scope, "o", 1))
            service.lastro.ledger.note(scope, LedgerItem("task-1", "gpt-5.2", asked=100, spent=10, left_out=1))
            service.run(service.lastro.ledger.flush())
            service.run(
                service.lastro.tier_store.write_uses(scope, [Use("call", at_us=microseconds(datetime.now(UTC)), times=1)], deadline_s=10)
            )
            service.run(service.lastro.tier_store.settle(scope, "session-1", TierLimits(hot_units=100, warm_units=100)))
            embedded = service.run(service.lastro.embeddings.state())
            vector = [0.5] * (512 if embedded is None else embedded.dimensions)
            service.run(VectorIndex(service.lastro.database).create(len(vector)))
            prompt.run(WAS_COLD, {"tenant": tenant, "vector": vector})
            prompt.run(WAITED, {"tenant": tenant})
        service.run(service.lastro.registry.revoke_key(service.lastro.registry.local(tenant, "operator"), key.split("_")[1]))
    erase_something(service)
    return made


def erase_something(service: Service) -> None:
    """All that can be erased, once, in a tenant of its own: Neo4j warns of names that nothing ever had."""
    tenant, lastro = f"gone-{uuid.uuid4().hex[:8]}", service.lastro
    admin = lastro.registry.local(tenant, "operator")
    key = service.key(tenant)
    policies = RegistryPolicies(lastro.registry, lastro.policies, lastro.units, admin)
    service.run(policies.save_team(Team(id="x", agents=["agent-1"])))
    with service.client(key, session="s") as client:
        stored(client, unit("a"), unit("b", relations=[edge("a", "provenance")]), unit("c", relations=[edge("b", "provenance")]))
        assert client.delete("/v1/units/a").status_code == 204
    service.run(lastro.retention.set(admin, Retention(rules=[RetentionRule(kind=RetainedKind.DECISION, days=1)])))
    service.run(lastro.erasure.tenant(admin, TenantErasure(tenant=tenant), lambda _: None))
    service.run(lastro.retention_job.once())


def values_for(prompt: Prompt, statement: Statement, tenant: str) -> dict[str, Any]:
    """Harmless parameters that find the tenant's units."""
    every: dict[str, Any] = {
        "tenant_id": tenant,
        "sees": compiled(Principal(tenant, "operator", Role.ADMIN, "local", Scope()), ["", "o", "o s"], None, None, datetime.now(UTC)),
        "looked_at": 50,
        "ids": ["limit", "call", "result", "rich", "newer"],
        "unit_ids": ["limit"],
        "seeds": [{"id": "rich", "activation": 1.0}],
        "weights": {"out": {**WEIGHTS, **NO_DIRECTION}, "in": {**WEIGHTS, **NO_DIRECTION}, "": NO_DIRECTION},
        "from_key": f"{tenant} ",
        "to_key": f"{tenant}!",
        "task_id": "task-1",
        "session_id": "session-1",
        "agent_id": "agent-1",
        "step": MAX_STEP,
        "as_of_us": FOREVER_US,
        "limit": 50,
        "sample": 50,
        "fan": 16,
        "width": 16,
        "most": 50,
        "decay": 0.7,
        "key_id": key_of(prompt, tenant) if statement.name != "registry/create_api_key" else uuid.uuid4().hex[:16],
        "role": "agent",
        "secret_hash": "0" * 64,
        "organization_id": None,
        "assessment_id": None,
        "created_at": NOW,
        "at": NOW,
        "body": '{"kinds": ["decision"]}',
        "expires_at": NOW,
        "revoked_at": NOW,
        "edges": [{"source_id": "newer", "target_id": "limit"}],
        "pairs": [{"call_id": "call", "result_id": "rich"}],
        "rows": [{"id": "fresh", "properties": {"kind": "observation", "content": "x"}, "timestamp": NOW, "recorded_at": NOW}],
        "secret": "0" * 64,
        "holder": "",
        "version": 1,
        "now_ms": 1,
        "until_ms": 1,
        "actions": [action.value for action in AuditAction],
        "key": f"{tenant} tenant {tenant}",
        "keys": [f"{tenant} tenant {tenant}"],
        "subject_type": "tenant",
        "subject_id": tenant,
        "window_s": 60,
        "amounts": [{"key": f"{tenant} agent x", "type": "agent", "name": "x", "units": 1, "bytes": 1}],
        "periods": [
            {"key": f"{tenant} agent x 0000000001 x", "subject": f"{tenant} agent x", "type": "agent", "name": "x", "hour": 1, "reads": 1}
        ],
        "from_hour": 0,
        "to_hour": 10**9,
        "uses": [{"id": "rich", "at_us": 2**59, "at": f"{2**59:018d}", "times": 1}],
        "session_ids": ["session-1"],
        "sessions": [{"id": "session-1", "count": 1}],
        "entries": [{"key": f"{tenant} 0000000001 x x", "hour": 1, "agent_id": "x", "task_id": "x", "answers": 1}],
        "after_starts": -1,
        **dict.fromkeys(("after_agent", "after_session", "after_task", "after_model"), ""),
    }
    if statement.name.startswith("vectors/"):
        every |= {
            "vector": [0.5] * vector_length(prompt),
            "kinds": [kind.value for kind in Kind],
            "index": index_name(prompt.statements.dialect),
            "text_index": text_index(prompt.statements.dialect),
            "query": access_of(operator(tenant)).clause,
            "before_key": "9",
            "rows": [{"tenant_id": tenant, "id": "limit", "due": "x"}],
        }
    if statement.name.startswith("search/"):
        every |= {
            "kinds": [kind.value for kind in Kind],
            "index": text_index(prompt.statements.dialect),
            "query": f"+search_text:(slow restart) {access_of(operator(tenant)).clause}",
            "keys": [f"{tenant} session-1 1", "corp.quux.internal"],
        }
    if statement.name.startswith("units/link_"):
        every["rows"] = [{"id": "limit", "keys": ["corp.quux.internal"]}]
    if statement.name.startswith("attachments/"):
        every |= {"key": original_of(prompt, tenant, "pending" if statement.name.endswith("mark_stored") else "stored"), "sha256": "0" * 64}
        every |= {"keys": [every["key"]], "rows": [{"id": "newer", "digests": ["1" * 64]}], "before_us": FOREVER_US}
        if statement.name.endswith("create_original"):
            every |= {"key": f"new {uuid.uuid4().hex}", "properties": {"state": "pending", "due_us": 1}}
    if "moves" in statement.params:
        _, every["moves"] = prompt.run(MOVES, {"tenant": tenant})
    if statement.name == "ledger/sum_entries":
        every |= {"agent_id": "operator", "session_id": "", "model": ""}
    return {name: every.get(name, ANY_VALUE.get(declared)) for name, declared in statement.params.items()}


ORIGINAL = (
    "MATCH (u:ContextUnit {tenant_id: $tenant, id: 'rich'}) MERGE (a:Attachment {tenant_id: $tenant, sha256: $sha256}) MERGE (u)-[:ATTACHES]->(a) "
    "CREATE (o:Original {tenant_id: $tenant, key: $key, object_key: 'x', scope_key: 'o s', agent_id: 'agent-1', session_id: 'session-1', "
    "team_ids: ['x'], for_all: false, bytes: 1, media_type: 'text/html', state: $state, due_us: 5})-[:HOLDS]->(a) RETURN o.key AS key"
)


def original_of(prompt: Prompt, tenant: str, state: str) -> str:
    """A fresh original that a unit of the tenant names."""
    key = f"original {uuid.uuid4().hex}"
    prompt.run(ORIGINAL, {"tenant": tenant, "key": key, "state": state, "sha256": "0" * 64})
    return key


def operator(tenant: str) -> AuthorizedScope:
    principal = Principal(tenant, "operator", Role.ADMIN, "local", Scope())
    return AuthorizedScope(principal, "o", "s", compiled(principal, ["", "o", "o s"], None, None, datetime.now(UTC)))


def vector_length(prompt: Prompt) -> int:
    """As the index has it."""
    _, rows = prompt.run("MATCH (s:EmbeddingState) RETURN s.dimensions AS n", {})
    return rows[0]["n"] if rows else 512


def key_of(prompt: Prompt, tenant: str) -> str:
    """A key of the tenant that is not revoked."""
    _, rows = prompt.run("MATCH (k:ApiKey {tenant_id: $tenant}) WHERE k.revoked_at IS NULL RETURN k.id AS id", {"tenant": tenant})
    return str(rows[0]["id"]) if rows else "nobody"


@pytest.mark.parametrize("name", NAMES)
def test_the_columns_are_those_that_the_header_declares(prompt: Prompt, tenants: tuple[str, str], name: str) -> None:
    if name not in prompt.statements:
        return  # another engine's
    statement = prompt.statements[name]
    values = values_for(prompt, statement, tenants[0])
    if prompt.embedded:
        # Its EXPLAIN tells no columns, so the statement is run, and undone.
        keys, _ = prompt.run(statement.text, statement.bind(values), keep=False)
    else:
        keys, _ = prompt.explain(statement, values)
    # Without a row the embedded engine tells no columns either.
    assert keys == list(statement.returns) or (prompt.embedded and not keys and not statement.name.startswith(FOUND))


def gathered(statement: Statement, records: list[Any]) -> list[Any]:
    """What was found: the records, or what the one record holds where a statement puts all rows into it."""
    return records[0]["rows"] if "rows" in statement.returns else records


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WRITES and not name.startswith("service/")])
def test_reads_find_their_own_tenant_and_nobody_elses(prompt: Prompt, tenants: tuple[str, str], name: str) -> None:
    if name not in prompt.statements:
        return  # another engine's
    statement = prompt.statements[name]
    if not statement.tenant_scoped:
        return
    _, own = prompt.run(statement.text, statement.bind(values_for(prompt, statement, tenants[0])), keep=False)
    assert gathered(statement, own) or not statement.name.startswith(FOUND), "the parameters of this test find something"
    _, strangers = prompt.run(statement.text, statement.bind(values_for(prompt, statement, "nobody-at-all")), keep=False)
    assert gathered(statement, strangers) == [] or strangers == [dict.fromkeys(statement.returns, 0)]


@pytest.mark.parametrize("name", NAMES)
def test_plans_seek_and_nothing_warns(prompt: Prompt, tenants: tuple[str, str], name: str) -> None:
    """On Neo4j only: the embedded engine tells no warnings, and its plans as prose."""
    if name not in prompt.statements:
        return  # another engine's
    statement = prompt.statements[name]
    values = values_for(prompt, statement, tenants[0])
    if prompt.embedded:
        return
    _, summary = prompt.explain(statement, values)
    warned = [status.gql_status for status in summary.gql_status_objects if status.gql_status not in ALWAYS_TOLD]
    assert not warned, [status.status_description for status in summary.gql_status_objects]
    scans = [name for name in operators(plan_of(summary)) if name in {"AllNodesScan", "NodeByLabelScan"}]
    assert bool(scans) == (statement.name in SCANS_ALLOWED), scans


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.startswith(("context/read_recent", "units/list_units", "tiers/read_units"))]
)
def test_the_newest_are_read_in_index_order(prompt: Prompt, tenants: tuple[str, str], name: str) -> None:
    """Decision 0002: neither sorting nor reading all of a task of 100,000 units for its newest fifty."""
    if prompt.embedded:
        return
    statement = prompt.statements[name]
    _, summary = prompt.explain(statement, values_for(prompt, statement, tenants[0]))
    found = operators(plan_of(summary))
    assert "NodeIndexSeekByRange" in found, found
    assert not {"Sort", "Top", "PartialSort", "PartialTop"} & set(found), found


def plan_of(summary: neo4j.ResultSummary) -> Any:
    return summary.plan  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def operators(plan: Any) -> list[str]:
    return [str(plan["operatorType"]).split("@")[0], *(name for child in plan.get("children", []) for name in operators(child))]


@pytest.mark.parametrize("name", [name for name in WRITES if not name.startswith("erasure/")])
def test_a_write_of_one_tenant_leaves_the_other_as_it_was(prompt: Prompt, tenants: tuple[str, str], name: str) -> None:
    writer, other = tenants
    statement = prompt.statements[name]
    values = values_for(prompt, statement, writer)
    before = prompt.export(writer), prompt.export(other)
    assert len(before[1]) >= 8, "five units, a task, a session, an agent and more"
    _, rows = prompt.run(statement.text, statement.bind(values))
    assert rows
    assert prompt.export(other) == before[1]
    assert (prompt.export(writer) == before[0]) == (name == "registry/create_tenant"), "the tenant is there already"


@pytest.fixture
def doomed(service: Service, prompt: Prompt) -> tuple[str, str]:
    """Two tenants whose erasures are under way, of a unit and of everything; named so that the erasure of one has the other's name in it."""
    made = f"doomed-{uuid.uuid4().hex[:8]}", f"doomed-{uuid.uuid4().hex[:8]}"
    for tenant in made:
        with service.client(service.key(tenant), session="s") as client:
            stored(
                client,
                unit("hub", "The hub of corp.quux.internal."),
                unit("spoke", relations=[edge("hub", "provenance")]),
                unit("far", relations=[edge("spoke", "provenance")]),
                unit("limit"),
                unit("shell"),
                unit("left", relations=[edge("shell")]),
            )
        # What the background job would do to the sessions, in the middle of a comparison.
        scope = service.lastro.registry.local(tenant, "operator")
        service.run(service.lastro.tier_store.settle(scope, "s", TierLimits(hot_units=100, warm_units=100)))
        for text in (
            "CREATE (e:Event {tenant_id: $tenant, id: $tenant, event_order: $tenant + ' 1'}) RETURN e",
            "CREATE (e:Erasure {tenant_id: $tenant, id: $tenant}) RETURN e",
            "MATCH (e:Erasure {id: $tenant}) MATCH (u:ContextUnit {tenant_id: $tenant, id: 'shell'}) CREATE (e)-[:ERASES]->(u) RETURN u",
            "MATCH (e:Erasure {id: $tenant}) MATCH (u:ContextUnit {tenant_id: $tenant, id: 'spoke'}) CREATE (e)-[:SPREADS]->(u) RETURN u",
        ):
            prompt.run(text, {"tenant": tenant})
    return made


@pytest.mark.parametrize("name", [name for name in WRITES if name.startswith("erasure/")])
def test_an_erasure_in_one_tenant_leaves_the_other_as_it_was(prompt: Prompt, doomed: tuple[str, str], name: str) -> None:
    """Also when it is told the other's erasure."""
    writer, other = doomed
    statement = prompt.statements[name]
    values = values_for(prompt, statement, writer)
    given: dict[str, Any] = {
        "ids": ["hub", "spoke"],
        "at": "2026-03-05T00:00:00+00:00",
        "retention": '{"rules": []}',
        "counts": "{}",
        "rows": [
            {"id": "spoke", "shell_id": f"erased {uuid.uuid4().hex}", "of": "id", "superseder_ids": ["a"], "result_ids": []},
        ],
    }
    values |= {key: value for key, value in given.items() if key in values}
    begun = "MATCH (t:Tenant {tenant_id: $tenant}) SET t.erasing_since = $since RETURN t"
    if name == "erasure/lock_erasing_tenant":
        prompt.run(begun, {"tenant": writer, "since": NOW})
    before = prompt.export(writer, usage=False), prompt.export(other, usage=False)
    for erasure_id in (other, writer):
        named = "erasure_id" in values and name != "erasure/create_erasure"
        _, rows = prompt.run(statement.text, statement.bind({**values, "erasure_id": erasure_id} if named else values))
        assert prompt.export(other, usage=False) == before[1]
        if not named:
            break
    assert rows
    assert prompt.export(writer, usage=False) != before[0]
    prompt.run(begun, {"tenant": writer, "since": None})  # or the background job would go on with it


def test_a_key_of_another_tenant_can_be_neither_revoked_nor_taken(prompt: Prompt, tenants: tuple[str, str]) -> None:
    writer, other = tenants
    before = prompt.export(other)
    for name in ("registry/revoke_api_key", "registry/create_api_key"):
        statement = prompt.statements[name]
        values = values_for(prompt, statement, writer) | {"key_id": key_of(prompt, other), "role": "admin"}
        try:
            _, rows = prompt.run(statement.text, statement.bind(values))
        except neo4j.exceptions.ConstraintError:  # a key's id is unique over all tenants
            rows = []
        assert rows == [], name
        assert prompt.export(other) == before
