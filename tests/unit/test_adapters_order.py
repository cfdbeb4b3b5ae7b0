"""A3 and A7: places by the model's attention, blocks whole and call first."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.order import call_first, position_values, two_ended, weights
from adapters.profile import Attention, Profile, built_in_families
from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, Relation, Tool

BASE = built_in_families()[0].default
PROFILES = [profile for family in built_in_families() for profile in (*family.profiles, family.default)]


def profile_with(head: float, amplitude: float = 0.3) -> Profile:
    attention = Attention(head=head, tail=1 - head, amplitude=amplitude, confidence="judgement", source="test")
    return BASE.model_copy(update={"attention": attention})


def test_tail_heavy_weights_give_the_published_order() -> None:
    assert two_ended(list(range(1, 9)), profile_with(0.3)) == [2, 5, 8, 7, 6, 4, 3, 1]


@pytest.mark.parametrize("n", range(12))
def test_equal_weights_put_the_best_first_and_the_second_best_last(n: int) -> None:
    expected: list[int] = []
    for each in range(n):
        expected.insert(-(-len(expected) // 2), each)
    assert two_ended(list(range(n)), profile_with(0.5)) == expected


@given(
    n=st.integers(0, 60), head=st.floats(0.05, 0.95), amplitude=st.floats(0, 1), fill=st.floats(0, 2), place=st.integers(0, len(PROFILES))
)
@settings(max_examples=300, deadline=None, database=None)
def test_no_block_of_lower_priority_stands_in_a_better_place(n: int, head: float, amplitude: float, fill: float, place: int) -> None:
    profile = PROFILES[place] if place < len(PROFILES) else profile_with(head, amplitude)
    values = position_values(n, profile, fill)
    order = two_ended(list(range(n)), profile, fill)
    assert sorted(order) == list(range(n))
    by_priority = [values[order.index(each)] for each in range(n)]
    assert all(better >= worse - 1e-12 for better, worse in pairwise(by_priority))
    assert all(1 - profile.attention.amplitude - 1e-12 <= value <= 1 + 1e-12 for value in values)


def test_weight_moves_to_the_tail_only_above_half_the_window() -> None:
    attention = profile_with(0.6).attention
    assert weights(attention, 0.0) == weights(attention, 0.5) == (0.6, pytest.approx(0.4))
    heads = [weights(attention, fill)[0] for fill in (0.5, 0.6, 0.8, 1.0)]
    assert heads == sorted(heads, reverse=True)
    assert weights(attention, 1.0) == weights(attention, 3.0) == (pytest.approx(0.06), pytest.approx(0.94))
    assert two_ended(list(range(8)), profile_with(0.6), 1.0)[-1] == 0


def test_every_profile_has_weights_that_sum_to_one_and_says_where_they_come_from() -> None:
    for profile in PROFILES:
        assert profile.attention.head + profile.attention.tail == pytest.approx(1)
        assert profile.window.effective <= profile.window.nominal
        for part in (profile.attention, profile.window, profile.tokenizer, profile.framing):
            assert part.source
            assert part.confidence


def call(id: str, call_id: str | None = None) -> ContextUnit:
    return ContextUnit(id=id, kind=Kind.DECISION, content=id, metadata=Metadata(tool=Tool(name="t", call_id=call_id)))


def result(id: str, *, cause: str | None = None, call_id: str | None = None) -> ContextUnit:
    relations = [Relation(target_id=cause, edge_type=EdgeType.CAUSATION)] if cause else []
    return ContextUnit(
        id=id, kind=Kind.TOOL_RESULT, content=id, relations=relations, metadata=Metadata(tool=Tool(name="t", call_id=call_id))
    )


def test_a_call_stands_right_before_its_results() -> None:
    units = [result("r2", cause="c2"), call("c1", "x"), result("r1", call_id="x"), call("c2")]
    assert [unit.id for unit in call_first(units)] == ["c2", "r2", "c1", "r1"]
    assert [unit.id for unit in call_first([result("r"), call("c")])] == ["c", "r"]
    assert [unit.id for unit in call_first([result("b", cause="c"), result("a", cause="c"), call("c")])] == ["c", "b", "a"]


def test_results_of_calls_that_are_not_there_come_last() -> None:
    assert [unit.id for unit in call_first([result("r", cause="gone"), call("a"), call("b")])] == ["a", "b", "r"]
