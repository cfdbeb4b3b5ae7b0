"""A large graph in little time: whole runs by one statement each, with the properties that the service's own writes leave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from adapters.base import unit_body
from adapters.tokenizers import Tokenizers
from app.ingest import completed
from benchmarks.made_up import Run, runs
from benchmarks.measuring import OnProgress
from benchmarks.raw import Raw, result_pairs
from graph.model.scope import AuthorizedScope
from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, digest
from graph.statements import Dialect, Statement, parse_statement
from graph.unit_rows import unit_row

LOAD_RUN = Path(__file__).with_name("load_run.cypher")
RUN_UNITS = 1_000
HUB = "unit-hub"
HUB_EDGES_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class LoadedGraph:
    """What was put into a tenant."""

    units: int
    edges: int
    hub_edges: int


def load_statement(dialect: Dialect) -> Statement:
    """``load_run.cypher`` as this engine takes it."""
    found = parse_statement("benchmarks/load_run", None, LOAD_RUN.read_text("utf-8"))
    return found if dialect is Dialect.EMBEDDED else found.in_one_map()


def load_graph(raw: Raw, scope: AuthorizedScope, units: int, *, hub: bool, on_progress: OnProgress) -> LoadedGraph:
    """``units`` units with three edges each in the scope's tenant; with ``hub``, each also depends on one more unit, the hub."""
    tokenizers = Tokenizers()
    statement = load_statement(raw.statements.dialect)
    recorded_at = datetime.now(UTC) - timedelta(hours=1)
    what = f"loading {scope.tenant_id}"
    edges = 0
    ids: list[str] = []
    for made in runs(units, RUN_UNITS):
        inner, outer = _split(made)
        raw.run_text(statement, _run_parameters(made, inner, scope, tokenizers, recorded_at))
        calls = [
            raw.bound(f"units/create_{edge_type}_edges", {"tenant_id": scope.tenant_id, "edges": found})
            for edge_type, found in outer.items()
            if found
        ]
        raw.write(calls)
        ids += [unit.id for unit in made.units]
        edges += sum(len(unit.relations) for unit in made.units)
        on_progress(what, len(ids), units)
    if hub:
        _add_hub(raw, scope, ids, tokenizers, recorded_at, on_progress)
    return LoadedGraph(len(ids), edges, len(ids) if hub else 0)


def _split(made: Run) -> tuple[dict[EdgeType, list[tuple[int, int]]], dict[EdgeType, list[dict[str, str]]]]:
    """Edges within the run, by position, and those to earlier runs, by id."""
    place = {unit.id: index for index, unit in enumerate(made.units)}
    inner: dict[EdgeType, list[tuple[int, int]]] = {edge_type: [] for edge_type in EdgeType}
    outer: dict[EdgeType, list[dict[str, str]]] = {edge_type: [] for edge_type in EdgeType}
    for index, unit in enumerate(made.units):
        for relation in unit.relations:
            target = place.get(relation.target_id)
            if target is None:
                outer[relation.edge_type].append({"source_id": unit.id, "target_id": relation.target_id})
            else:
                inner[relation.edge_type].append((index, target))
    return inner, outer


def _run_parameters(
    made: Run, inner: dict[EdgeType, list[tuple[int, int]]], scope: AuthorizedScope, tokenizers: Tokenizers, recorded_at: datetime
) -> dict[str, Any]:
    # What create_supersession_edges and mark_results leave on the other unit is put there at once.
    superseders: dict[str, list[str]] = defaultdict(list)
    for source, target in inner[EdgeType.SUPERSESSION]:
        superseders[made.units[target].id].append(made.units[source].id)
    results: dict[str, list[str]] = defaultdict(list)
    for pair in result_pairs(made.units):
        results[pair["call_id"]].append(pair["result_id"])
    rows = [_row(unit, scope, tokenizers, recorded_at) for unit in made.units]
    for row in rows:
        unit_id = str(row["id"])
        for name, found in (("superseder_ids", superseders), ("result_ids", results)):
            if unit_id in found:
                row["properties"][name] = found[unit_id][-8:]
    return {
        "tenant_id": scope.tenant_id,
        "task_id": made.task_id,
        "session_id": made.units[0].metadata.session_id,
        "agent_id": scope.principal.agent_id,
        "rows": rows,
        **{edge_type.value: [list(edge) for edge in found] for edge_type, found in inner.items()},
    }


def _row(unit: ContextUnit, scope: AuthorizedScope, tokenizers: Tokenizers, recorded_at: datetime) -> dict[str, Any]:
    whole = completed(unit, scope)
    return unit_row(whole, scope.principal, digest(whole), tokenizers.count_o200k(unit_body(whole)), recorded_at)


def _add_hub(
    raw: Raw, scope: AuthorizedScope, ids: Sequence[str], tokenizers: Tokenizers, recorded_at: datetime, on_progress: OnProgress
) -> None:
    hub = ContextUnit(
        id=HUB,
        kind=Kind.CONSTRAINT,
        content="Changes in production need a yes from the person on call; one change at a time, each written down.",
        metadata=Metadata(timestamp=recorded_at - timedelta(days=400)),
    )
    raw.write([raw.bound("units/create_units", {"tenant_id": scope.tenant_id, "rows": [_row(hub, scope, tokenizers, recorded_at)]})])
    done = 0
    for part in _parts(ids):
        edges = [{"source_id": unit_id, "target_id": HUB} for unit_id in part]
        raw.write([raw.bound("units/create_dependency_edges", {"tenant_id": scope.tenant_id, "edges": edges})])
        done += len(part)
        on_progress("linking the hub", done, len(ids))


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), HUB_EDGES_AT_ONCE):
        yield ids[start : start + HUB_EDGES_AT_ONCE]
