"""Order keys sort as time and id do, and a range holds its own keys and no other's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import assume, example, given
from hypothesis import strategies as st

from graph import order_keys
from graph.model.base import check_id
from graph.model.units import Tier

EARLIEST, LATEST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


def is_id(text: str) -> bool:
    try:
        check_id(text)
    except ValueError:
        return False
    return True


us = order_keys.microseconds
IDS = st.text(min_size=1, max_size=4).filter(is_id) | st.text(alphabet="a!~0é", min_size=1, max_size=3)
"""Any ids, and many that are prefixes of one another or hold the character that ends a range."""
STEPS = st.none() | st.integers(0, order_keys.MAX_STEP)


@st.composite
def times(draw: st.DrawFn) -> datetime:
    """Any time that the wire takes: years 1 to 9999 in UTC, told with any offset up to 18 hours."""
    at = draw(st.datetimes(timezones=st.just(UTC)) | st.sampled_from([EARLIEST, LATEST]))
    offset = timedelta(minutes=draw(st.integers(-18 * 60, 18 * 60)))
    try:
        return at.astimezone(timezone(offset))
    except OverflowError:
        return at


TIERS = st.sampled_from(list(Tier))


@given(TIERS, times(), IDS, TIERS, times(), IDS)
def test_keys_of_tiers_sort_as_tier_time_and_id(
    tier: Tier, at: datetime, unit_id: str, other: Tier, later: datetime, other_id: str
) -> None:
    nearness = [Tier.COLD, Tier.WARM, Tier.HOT]
    by_fact = (nearness.index(tier), at, unit_id) < (nearness.index(other), later, other_id)
    keys = [order_keys.tier_order("t", "s", *told) for told in ((tier, us(at), unit_id), (other, us(later), other_id))]
    assert (keys[0] < keys[1]) == by_fact
    low, high = order_keys.tier_range("t", "s", tier)
    assert [low <= key < high for key in keys] == [True, tier is other]
    whole = order_keys.whole_range("t", "s")
    assert all(whole[0] <= key < whole[1] for key in keys)


@given(TIERS, times(), TIERS, times(), IDS, IDS)
def test_what_has_aged_is_a_range(tier: Tier, before: datetime, other: Tier, at: datetime, tenant: str, unit_id: str) -> None:
    key = order_keys.tier_age(other, us(at), order_keys.tenant_order(tenant, us(LATEST), unit_id))
    low, high = order_keys.aged_range(tier, us(before))
    assert (low <= key < high) == (other is tier and at < before)


@given(times(), IDS, times(), IDS)
@example(EARLIEST, "a", LATEST, "a")
def test_keys_sort_as_time_and_id(first: datetime, first_id: str, second: datetime, second_id: str) -> None:
    by_fact = (first, first_id) < (second, second_id)
    assert (order_keys.tenant_order("t", us(first), first_id) < order_keys.tenant_order("t", us(second), second_id)) == by_fact
    assert (order_keys.task_order("t", "k", us(first), first_id) < order_keys.task_order("t", "k", us(second), second_id)) == by_fact
    assert (order_keys.session_order("t", "s", us(first), first_id) < order_keys.session_order("t", "s", us(second), second_id)) == by_fact


@given(STEPS, times(), IDS, STEPS, times(), IDS)
def test_step_keys_sort_as_step_time_and_id(
    step: int | None, at: datetime, unit_id: str, other: int | None, later: datetime, other_id: str
) -> None:
    by_fact = (step or 0, at, unit_id) < (other or 0, later, other_id)
    assert (
        order_keys.task_step_order("t", "k", step, us(at), unit_id) < order_keys.task_step_order("t", "k", other, us(later), other_id)
    ) == by_fact


@given(times())
@example(EARLIEST)
@example(LATEST)
def test_a_time_is_eighteen_digits_at_most(at: datetime) -> None:
    assert 0 <= order_keys.microseconds(at) < 10**18 < order_keys.FOREVER_US


@given(IDS, IDS, IDS, IDS, times(), IDS)
def test_a_range_holds_the_keys_of_its_own_parts_only(
    tenant: str, task: str, other_tenant: str, other_task: str, at: datetime, unit_id: str
) -> None:
    for key, own in (
        (order_keys.task_order(other_tenant, other_task, us(at), unit_id), (other_tenant, other_task) == (tenant, task)),
        (order_keys.task_step_order(other_tenant, other_task, 7, us(at), unit_id), (other_tenant, other_task) == (tenant, task)),
        (order_keys.session_order(other_tenant, other_task, us(at), unit_id), (other_tenant, other_task) == (tenant, task)),
    ):
        low, high = order_keys.whole_range(tenant, task)
        assert (low <= key < high) == own
    low, high = order_keys.whole_range(tenant)
    assert (low <= order_keys.tenant_order(other_tenant, us(at), unit_id) < high) == (other_tenant == tenant)


@given(IDS, IDS, st.integers(0, order_keys.MAX_STEP), IDS, IDS, STEPS, times(), IDS)
@example("t", "k", order_keys.MAX_STEP, "t", "k", order_keys.MAX_STEP, LATEST, "a")
@example("t", "k", 0, "t", "k", None, EARLIEST, "a")
def test_a_range_up_to_a_step_ends_with_it(
    tenant: str, task: str, step: int, other_tenant: str, other_task: str, other_step: int | None, at: datetime, unit_id: str
) -> None:
    low, high = order_keys.up_to_step(tenant, task, step)
    inside = low <= order_keys.task_step_order(other_tenant, other_task, other_step, us(at), unit_id) < high
    assert inside == ((other_tenant, other_task) == (tenant, task) and (other_step or 0) <= step)


@given(IDS, IDS, st.integers(0, 20), st.integers(0, 20), times(), IDS)
def test_near_steps_of_one_task(tenant: str, task: str, step: int, other_step: int, at: datetime, unit_id: str) -> None:
    assume(tenant and task)
    low, high = order_keys.up_to_step(tenant, task, step)
    assert (low <= order_keys.task_step_order(tenant, task, other_step, us(at), unit_id) < high) == (other_step <= step)
