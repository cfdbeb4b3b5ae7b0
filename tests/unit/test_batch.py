"""``check_batch`` against a slow model that looks at every pair (U4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model.batch import check_batch
from graph.model.errors import CycleInBatch, DuplicateInBatch, LastroError, SelfEdge
from graph.model.units import ContextUnit, EdgeType, Kind, Relation

EDGES = list(EdgeType)


def unit_of(unit_id: str, targets: list[str]) -> ContextUnit:
    relations = [Relation(target_id=target, edge_type=EDGES[place % len(EDGES)]) for place, target in enumerate(targets)]
    return ContextUnit(id=unit_id, kind=Kind.OBSERVATION, content="Something was seen.", relations=relations)


NAMES = st.sampled_from("abcdefg")
"""Few, so that ids meet; ``x`` and ``y`` are stored units, outside of any batch."""
BATCHES = st.lists(st.builds(unit_of, NAMES, st.lists(NAMES | st.sampled_from("xy"), max_size=3)), max_size=7)
DISTINCT = st.lists(
    st.builds(unit_of, NAMES, st.lists(NAMES | st.sampled_from("xy"), max_size=2)), max_size=7, unique_by=lambda unit: unit.id
)


def reached(units: list[ContextUnit], start: str) -> set[str]:
    """Everything that edges of the batch lead to, found by repeating until nothing is new."""
    targets = {unit.id: {relation.target_id for relation in unit.relations} for unit in units}
    found = set(targets[start])
    while True:
        more = found.union(*(targets.get(name, set()) for name in found))
        if more == found:
            return found
        found = more


def expected(units: list[ContextUnit]) -> tuple[type[LastroError], set[int]] | None:
    """The error and the indexes that it may name."""
    ids = [unit.id for unit in units]
    twice = [index for index, name in enumerate(ids) if name in ids[:index]]
    if twice:
        return DuplicateInBatch, {twice[0]}
    own = [index for index, unit in enumerate(units) if any(relation.target_id == unit.id for relation in unit.relations)]
    if own:
        return SelfEdge, {own[0]}
    circular = {index for index, name in enumerate(ids) if name in reached(units, name)}
    return (CycleInBatch, circular) if circular else None


@given(BATCHES | DISTINCT)
def test_it_refuses_what_the_slow_model_refuses_and_names_an_item_at_fault(units: list[ContextUnit]) -> None:
    wanted = expected(units)
    if wanted is None:
        check_batch(units)
        return
    kind, indexes = wanted
    with pytest.raises(LastroError) as refused:
        check_batch(units)
    assert type(refused.value) is kind
    where = refused.value.where
    assert where is not None
    assert where.index in indexes
    assert where.id == units[where.index].id


def test_a_long_chain_and_a_long_ring() -> None:
    """As large as a batch may be, without recursion and without squares."""
    chain = [unit_of(f"u{number}", [f"u{number + 1}"]) for number in range(10_000)]
    check_batch(chain)
    with pytest.raises(CycleInBatch):
        check_batch([*chain, unit_of("u10000", ["u0"])])
