"""The official driver on its own, running the statements that the service runs: what everything is compared with."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast
from unittest.mock import patch

import neo4j
from neo4j.exceptions import TransientError

from graph.connection import Database
from graph.engines.base import Address
from graph.model.scope import AuthorizedScope
from graph.model.units import ContextUnit, EdgeType, Kind
from graph.order_keys import session_place
from graph.preparation import PreparedUnit
from graph.statements import Row, Statements, dialect_of

Call = tuple[str, dict[str, Any]]
"""A statement's name and its parameters, as bound."""
FETCH = 2_000
WRITE_TRIES = 20


@contextmanager
def driver(address: Address) -> Generator[neo4j.Driver]:
    """A blocking driver: with one caller it was faster than the asynchronous one wherever both were tried (docs/benchmarks.md)."""
    with neo4j.GraphDatabase.driver(  # pyright: ignore[reportUnknownMemberType] (the driver's own **config)
        address.uri, auth=(address.user, address.password), notifications_min_severity="OFF", telemetry_disabled=True
    ) as found:
        yield found


def statements_for(connected: neo4j.Driver) -> Statements:
    """The texts that the service runs on this server."""
    return Statements(dialect_of(connected.get_server_info().agent))  # pyright: ignore[reportUnknownMemberType] (as above)


class Raw:
    """Runs statements with one session, as a program without a service would."""

    def __init__(self, connected: neo4j.Driver, address: Address) -> None:
        self.statements = statements_for(connected)
        self._session = connected.session(  # pyright: ignore[reportUnknownMemberType] (as above)
            database=address.database, fetch_size=FETCH
        )

    def read(self, call: Call) -> list[neo4j.Record]:
        """All records of one statement, autocommitted, as the driver gives them: what a program does with them is not counted."""
        name, bound = call
        return list(self._session.run(self.statements[name].literal, bound))

    def write(self, calls: Sequence[Call]) -> None:
        """Statements in one transaction, again when another got in its way, as any program must on the embedded engine."""
        for tries_left in reversed(range(WRITE_TRIES)):
            try:
                with self._session.begin_transaction() as transaction:
                    for name, bound in calls:
                        transaction.run(self.statements[name].literal, bound).consume()
                    transaction.commit()
            except TransientError:
                if not tries_left:
                    raise
            else:
                return

    def bound(self, name: str, values: dict[str, Any]) -> Call:
        """Values as the statement takes them on this engine: plain lists and maps, as any program hands them to the driver."""
        return name, {"parameters": values} if self.statements[name].one_map else values

    def close(self) -> None:
        self._session.close()


@contextmanager
def recorded(database: Database) -> Generator[list[Call]]:
    """What the stores read within the block, as bound, so that the raw side can run exactly the same."""
    calls: list[Call] = []
    read = database.read

    async def noted(name: str, scope: AuthorizedScope | None = None, *, deadline_s: float = 60.0, **params: object) -> list[Row]:
        statement = database.statements[name]
        scoped = {key: value for key, value in scope.parameters.items() if key in statement.params} if scope is not None else {}
        calls.append((name, statement.bind({**scoped, **params})))
        return await read(name, scope, deadline_s=deadline_s, **params)

    with patch.object(database, "read", noted):
        yield calls


def write_calls(raw: Raw, scope: AuthorizedScope, batch: Sequence[PreparedUnit], *, place: int = 0) -> list[Call]:
    """A batch as nodes, names, memberships and edges: what the service writes. ``place``: how many units its session holds already."""
    tenant = scope.tenant_id
    units = [item.unit for item in batch]
    ids = [unit.id for unit in units]
    session_id, task_id = units[0].metadata.session_id, units[0].metadata.task_id
    assert session_id is not None
    rows = [_placed(item, session_place(tenant, session_id, place + number)) for number, item in enumerate(batch, start=1)]
    mentions = [{"id": item.unit.id, "keys": list(item.entities.mentions)} for item in batch if item.entities.mentions]
    subjects = [{"id": item.unit.id, "keys": list(item.entities.about)} for item in batch if item.entities.about]
    calls = [
        raw.bound("units/take_session_places", {"tenant_id": tenant, "sessions": [{"id": session_id, "count": len(ids)}]}),
        raw.bound("units/create_units", {"tenant_id": tenant, "rows": rows}),
        *([raw.bound("units/link_mentions", {"tenant_id": tenant, "rows": mentions})] if mentions else []),
        *([raw.bound("units/link_subjects", {"tenant_id": tenant, "rows": subjects})] if subjects else []),
        raw.bound(
            "units/merge_session",
            {"tenant_id": tenant, "session_id": session_id, "agent_id": scope.principal.agent_id, "unit_ids": ids},
        ),
        raw.bound("units/merge_task", {"tenant_id": tenant, "task_id": task_id, "unit_ids": ids}),
    ]
    constraints = [unit.id for unit in units if unit.kind is Kind.CONSTRAINT]
    if constraints:
        calls.append(raw.bound("units/bind_constraints", {"tenant_id": tenant, "task_id": task_id, "unit_ids": constraints}))
    for edge_type in EdgeType:
        edges = edges_of(units, edge_type)
        if edges:
            calls.append(raw.bound(f"units/create_{edge_type}_edges", {"tenant_id": tenant, "edges": edges}))
    pairs = result_pairs(units)
    if pairs:
        calls.append(raw.bound("units/mark_results", {"tenant_id": tenant, "pairs": pairs}))
    return calls


def _placed(item: PreparedUnit, place: str) -> dict[str, object]:
    """The row as the service completes it in the transaction."""
    return {**item.row, "properties": {**cast("dict[str, object]", item.row["properties"]), "session_place": place}}


def guard_calls(raw: Raw, scope: AuthorizedScope, batch: Sequence[PreparedUnit]) -> list[Call]:
    """What comes first in each of the service's writes: the tenant's lock, and the look for targets and a few of the batch's ids."""
    units = [item.unit for item in batch]
    ids = {unit.id for unit in units}
    targets = {relation.target_id for unit in units for relation in unit.relations} - ids
    few = {units[0].id, units[len(units) // 2].id, units[-1].id}
    return [
        raw.bound("units/lock_tenant", {"tenant_id": scope.tenant_id}),
        raw.bound("units/read_stored_keys", {**scope.parameters, "ids": sorted(few | targets)}),
    ]


def edges_of(units: Sequence[ContextUnit], edge_type: EdgeType) -> list[dict[str, str]]:
    return [
        {"source_id": unit.id, "target_id": relation.target_id}
        for unit in units
        for relation in unit.relations
        if relation.edge_type is edge_type
    ]


def result_pairs(units: Sequence[ContextUnit]) -> list[dict[str, str]]:
    """Each made-up result is caused by the call right before it; a causation edge to any other call does not answer that one."""
    return [
        {"call_id": relation.target_id, "result_id": unit.id}
        for unit in units
        if unit.kind is Kind.TOOL_RESULT
        for relation in unit.relations[:1]
    ]
