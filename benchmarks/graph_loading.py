"""A large graph in little time: the service's own statements by the raw driver, so that nodes, edges and indexes are as it leaves them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from adapters.base import unit_body
from adapters.tokenizers import Tokenizers
from app.ingest import completed
from benchmarks.made_up import runs
from benchmarks.measuring import OnProgress
from benchmarks.raw import Raw, write_calls
from graph.model.scope import AuthorizedScope
from graph.model.units import ContextUnit, Kind, Metadata
from graph.preparation import PreparedUnit
from graph.unit_rows import prepared_unit

RUN_UNITS = 1_000
HUB = "unit-hub"
HUB_EDGES_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class LoadedGraph:
    """What was put into a tenant."""

    units: int
    edges: int
    hub_edges: int


def load_graph(raw: Raw, scope: AuthorizedScope, units: int, *, hub: bool, on_progress: OnProgress) -> LoadedGraph:
    """``units`` units with three edges each in the scope's tenant; with ``hub``, each also depends on one more unit, the hub."""
    tokenizers = Tokenizers()
    recorded_at = datetime.now(UTC) - timedelta(hours=1)
    what = f"loading {scope.tenant_id}"
    edges = 0
    ids: list[str] = []
    for made in runs(units, RUN_UNITS):
        raw.write(write_calls(raw, scope, [prepared(unit, scope, tokenizers, recorded_at) for unit in made.units]))
        ids += [unit.id for unit in made.units]
        edges += sum(len(unit.relations) for unit in made.units)
        on_progress(what, len(ids), units)
    if hub:
        unit = ContextUnit(
            id=HUB,
            kind=Kind.CONSTRAINT,
            content="Changes in production need a yes from the person on call; one change at a time, each written down.",
            metadata=Metadata(timestamp=recorded_at - timedelta(days=400)),
        )
        row = prepared(unit, scope, tokenizers, recorded_at).row
        raw.write([raw.bound("units/create_units", {"tenant_id": scope.tenant_id, "rows": [row]})])
        for start in range(0, len(ids), HUB_EDGES_AT_ONCE):
            told = [{"source_id": unit_id, "target_id": HUB} for unit_id in ids[start : start + HUB_EDGES_AT_ONCE]]
            raw.write([raw.bound("units/create_dependency_edges", {"tenant_id": scope.tenant_id, "edges": told})])
            on_progress("linking the hub", start + len(told), len(ids))
    return LoadedGraph(len(ids), edges, len(ids) if hub else 0)


def prepared(unit: ContextUnit, scope: AuthorizedScope, tokenizers: Tokenizers, recorded_at: datetime) -> PreparedUnit:
    """The unit as ``app.ingest`` hands it to the store."""
    whole = completed(unit, scope)
    return prepared_unit(whole, scope.principal, tokenizers.count_o200k(unit_body(whole)), recorded_at)
