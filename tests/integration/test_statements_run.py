"""Every statement as the loader gives it to an engine: its columns, its plan, its warnings, and that it stays within its tenant."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import neo4j
import pytest
from api.wire import call, result, stored
from conftest import Service, edge, unit

from graph.context_store import NO_DIRECTION
from graph.model.scope import Role
from graph.order_keys import FOREVER_US, MAX_STEP
from graph.statements import Dialect, Mode, Row, Statement, load_all
from graph.unit_rows import as_datetime

NAMES = sorted({item.name for item in load_all() if item.mode in {Mode.READ, Mode.WRITE}})
WRITES = sorted({item.name for item in load_all() if item.mode is Mode.WRITE and item.tenant_scoped})
NOW = "2026-03-04T08:06:07-03:00"
ALWAYS_TOLD = {"00000", "00001", "02000"}
"""Status of every success, with or without rows, or without a result."""
SCANS_ALLOWED: dict[str, str] = {}
"""Statements that may scan, with the reason; none does."""
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

    def export(self, tenant: str) -> list[str]:
        """Everything of a tenant: nodes, properties, and edges to and from wherever."""
        text = (
            "MATCH (n) WHERE n.tenant_id = $tenant RETURN labels(n) AS labels, properties(n) AS told, "
            "[(n)-[r]->(m) | [type(r), m.tenant_id, m.id]] AS away, [(n)<-[r]-(m) | [type(r), m.tenant_id, m.id]] AS here"
        )
        _, rows = self.run(text, {"tenant": tenant})
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
def tenants(service: Service) -> tuple[str, str]:
    """Two tenants with units of equal ids, which hold every property and edge that there is."""
    made = f"both-{uuid.uuid4().hex[:8]}-a", f"both-{uuid.uuid4().hex[:8]}-b"
    for tenant in made:
        key = service.key(tenant, role=Role.PUBLISHER)
        service.key(tenant)
        with service.client(key, session="session-1", model="gpt-5.2", organization="o", assessment="s") as client:
            stored(
                client,
                unit("limit", "Never restart it by day.", "constraint", task_id="task-1", trust="normative"),
                call("call", 1, task_id="task-1"),
                result("result", "call", 1, "It is slow.", task_id="task-1"),
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
                unit("newer", kind="correction", task_id="task-1", relations=[edge("rich", "supersession")]),
            )
        service.run(service.lastro.registry.revoke_key(service.lastro.registry.local(tenant, "operator"), key.split("_")[1]))
    return made


def values_for(prompt: Prompt, statement: Statement, tenant: str) -> dict[str, Any]:
    """Harmless parameters that find the tenant's units."""
    every: dict[str, Any] = {
        "tenant_id": tenant,
        "scope_keys": ["", "o", "o s"],
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
    }
    return {name: every[name] for name in statement.params}


def key_of(prompt: Prompt, tenant: str) -> str:
    """A key of the tenant that is not revoked."""
    _, rows = prompt.run("MATCH (k:ApiKey {tenant_id: $tenant}) WHERE k.revoked_at IS NULL RETURN k.id AS id", {"tenant": tenant})
    return str(rows[0]["id"]) if rows else "nobody"


@pytest.mark.parametrize("name", NAMES)
def test_the_columns_are_those_that_the_header_declares(prompt: Prompt, tenants: tuple[str, str], name: str) -> None:
    statement = prompt.statements[name]
    values = values_for(prompt, statement, tenants[0])
    if prompt.embedded:
        # Its EXPLAIN tells no columns, so the statement is run, and undone.
        keys, _ = prompt.run(statement.text, statement.bind(values), keep=False)
    else:
        keys, _ = prompt.explain(statement, values)
    assert keys == list(statement.returns)


def gathered(statement: Statement, records: list[Any]) -> list[Any]:
    """What was found: the records, or what the one record holds where a statement puts all rows into it."""
    return records[0]["rows"] if list(statement.returns) == ["rows"] else records


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WRITES and not name.startswith("service/")])
def test_reads_find_their_own_tenant_and_nobody_elses(prompt: Prompt, tenants: tuple[str, str], name: str) -> None:
    statement = prompt.statements[name]
    if not statement.tenant_scoped:
        return
    _, own = prompt.run(statement.text, statement.bind(values_for(prompt, statement, tenants[0])), keep=False)
    assert gathered(statement, own), "the parameters of this test find something"
    _, strangers = prompt.run(statement.text, statement.bind(values_for(prompt, statement, "nobody-at-all")), keep=False)
    assert gathered(statement, strangers) == []


@pytest.mark.parametrize("name", NAMES)
def test_plans_seek_and_nothing_warns(prompt: Prompt, tenants: tuple[str, str], name: str) -> None:
    """On Neo4j only: the embedded engine tells no warnings, and its plans as prose."""
    statement = prompt.statements[name]
    values = values_for(prompt, statement, tenants[0])
    if prompt.embedded:
        return
    _, summary = prompt.explain(statement, values)
    warned = [status.gql_status for status in summary.gql_status_objects if status.gql_status not in ALWAYS_TOLD]
    assert not warned, [status.status_description for status in summary.gql_status_objects]
    scans = [name for name in operators(plan_of(summary)) if name in {"AllNodesScan", "NodeByLabelScan"}]
    assert bool(scans) == (statement.name in SCANS_ALLOWED), scans


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("context/read_recent", "units/list_units"))])
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


@pytest.mark.parametrize("name", WRITES)
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
