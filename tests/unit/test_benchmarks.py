"""What the benchmarks compute: percentiles, made-up runs, and the check for split pairs."""

from __future__ import annotations

import random

import pytest

from benchmarks.made_up import one_run, run
from benchmarks.measuring import Samples, at_least, at_most, percentile, plain, rotated
from benchmarks.raw import result_pairs
from benchmarks.tau import call_of, split_pairs
from graph.model.batch import check_batch
from graph.model.content import check_content
from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, Relation, Tool


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([4.0], 0.95, 4.0), ([1.0, 2.0], 0.5, 1.5), ([3.0, 1.0, 2.0], 0.0, 1.0), ([3.0, 1.0, 2.0], 1.0, 3.0), ([0.0, 10.0], 0.95, 9.5)],
)
def test_percentiles_lie_between_neighbours(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == pytest.approx(expected)


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 1.1), ([1.0], -0.1)])
def test_a_percentile_of_nothing_is_refused(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, share)


def test_ratios_are_taken_round_by_round() -> None:
    samples = Samples()
    for a, b in ((1.0, 2.0), (10.0, 10.0), (6.0, 2.0)):
        samples.add("a", a)
        samples.add("b", b)
    assert samples.paired_ratio("a", "b") == 1.0


def test_targets_are_met_at_their_bound() -> None:
    figure = plain("write", "embedded", "rate", 0.7, "of raw")
    assert at_least(figure, 0.7).met
    assert at_most(figure, 0.7).met
    assert not at_least(figure, 0.71).met


def test_each_way_is_first_in_turn() -> None:
    assert [rotated("abc", turn)[0] for turn in range(4)] == ["a", "b", "c", "a"]


def test_made_up_runs_are_batches_the_service_takes() -> None:
    units = one_run(1_000)
    check_batch(units)
    for unit in units:
        check_content(unit.content, 10_000)
    assert [len(unit.relations) for unit in units[10:]] == [3] * 990
    assert {relation.edge_type for unit in units for relation in unit.relations} == set(EdgeType)
    assert units == one_run(1_000)


def test_made_up_results_answer_the_call_before_them() -> None:
    units = run(1, 200, first=200, chance=random.Random(1)).units  # noqa: S311 (made-up data)
    by_id = {unit.id: unit for unit in units}
    for pair in result_pairs(units):
        call = call_of(by_id[pair["result_id"]], by_id)
        assert call is not None
        assert call.id == pair["call_id"]


def unit(id: str, kind: Kind, step: int, *causes: str) -> ContextUnit:
    return ContextUnit(
        id=id,
        kind=kind,
        content="Something.",
        metadata=Metadata(task_step=step, tool=Tool(name="look", call_id="c")),
        relations=[Relation(target_id=cause, edge_type=EdgeType.CAUSATION) for cause in causes],
    )


@pytest.mark.parametrize(
    ("answer", "step", "wrong"),
    [
        (["call", "result"], 2, []),
        ([], 2, []),
        (["result"], 2, ["result"]),
        (["call"], 2, ["call"]),
        (["call"], 1, []),
    ],
)
def test_a_pair_is_split_when_one_is_there_and_the_other_known(answer: list[str], step: int, wrong: list[str]) -> None:
    units = {"call": unit("call", Kind.DECISION, 1), "result": unit("result", Kind.TOOL_RESULT, 2, "call")}
    assert split_pairs(answer, units, step) == wrong
