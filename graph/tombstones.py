"""What a write does about erasures: it refuses what was erased, and hands on the mark of what it is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyio import to_thread

from graph.connection import WriteTransaction
from graph.model.erasure import TombstoneKey, TombstoneKeys
from graph.model.errors import UnitErased
from graph.model.scope import AuthorizedScope
from graph.model.units import ContextUnit, EdgeType
from graph.statements import Row

SHORT = 65_536
"""Characters of a batch up to which its hashes are made between other work and not in a thread."""


async def refuse_erased(
    transaction: WriteTransaction,
    scope: AuthorizedScope,
    tombstones: TombstoneKeys,
    batch: Sequence[ContextUnit],
    new: Sequence[ContextUnit],
) -> None:
    """Compare the new units of a batch with the tenant's tombstones; for a tenant that has some, under its lock.

    Raises:
        UnitErased: names the first unit whose id or content was erased; not which of the two, nor when or by whom.
    """
    if not new:
        return
    key = tombstones.of(scope.tenant_id)
    if sum(len(unit.content) for unit in new) > SHORT:
        hashes = await to_thread.run_sync(_hashes, key, new)
    else:
        hashes = _hashes(key, new)
    asked = sorted({hashed for pair in hashes for hashed in pair})
    rows = await transaction.run("erasure/read_tombstones", scope, hashes=asked)
    erased = {str(row["id"]) for row in rows}
    if not erased:
        return
    refused = next(unit.id for unit, pair in zip(new, hashes, strict=True) if not erased.isdisjoint(pair))
    raise UnitErased().at(index=[unit.id for unit in batch].index(refused), id=refused)


def _hashes(key: TombstoneKey, units: Sequence[ContextUnit]) -> list[tuple[str, ...]]:
    return [(key.of_id(unit.id), *key.of_values(unit.content, (None, unit.metadata.agent_id))) for unit in units]


def made_from_erased(new: Sequence[ContextUnit], stored: Mapping[str, Row]) -> set[str]:
    """Ids of new units that bear the mark ``source_erased`` from the start: made, over any number of units of the batch, from one that does."""
    made_from: dict[str, list[str]] = {}
    pending: list[str] = []
    for unit in new:
        for relation in unit.relations:
            if relation.edge_type is EdgeType.PROVENANCE:
                made_from.setdefault(relation.target_id, []).append(unit.id)
                row = stored.get(relation.target_id)
                if row is not None and row["source_erased"]:
                    pending.append(unit.id)
    marked: set[str] = set()
    while pending:
        unit_id = pending.pop()
        if unit_id not in marked:
            marked.add(unit_id)
            pending += made_from.get(unit_id, ())
    return marked
