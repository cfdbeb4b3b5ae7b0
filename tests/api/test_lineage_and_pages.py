"""Lineage in both directions, and lists by cursor."""

from __future__ import annotations

import httpx2
import pytest
from api.wire import ids, lineage, listed, of_all_sessions, stored, write
from conftest import edge, unit


def at(second: int) -> str:
    return f"2026-03-04T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


@pytest.fixture
def chain(client: httpx2.Client) -> httpx2.Client:
    """u0 <- u1 <- … <- u12, and a side branch: x stands on u5, u6 stands on y as well."""
    stored(
        client,
        unit("y"),
        *[unit(f"u{n}", relations=([edge(f"u{n - 1}")] if n else []) + ([edge("y", "provenance")] if n == 6 else [])) for n in range(13)],
        unit("x", relations=[edge("u5", "dependency")]),
    )
    return client


def test_lineage_reaches_as_far_as_it_was_asked(chain: httpx2.Client) -> None:
    assert ids(lineage(chain, "u6", direction="before", depth=1)["units"])[0] == "u6"
    assert sorted(ids(lineage(chain, "u6", direction="before", depth=1)["units"])) == ["u5", "u6", "y"]
    assert sorted(ids(lineage(chain, "u6", direction="after", depth=2)["units"])) == ["u6", "u7", "u8"]
    assert sorted(ids(lineage(chain, "u6", direction="both", depth=1)["units"])) == ["u5", "u6", "u7", "y"]
    assert len(lineage(chain, "u12", direction="before", depth=10)["units"]) == 12
    assert ids(lineage(chain, "u0", direction="before", depth=10)["units"]) == ["u0"]


def test_three_edges_both_ways_is_what_lineage_shows_by_itself(chain: httpx2.Client) -> None:
    told = chain.get("/v1/units/u5/lineage").json()
    assert sorted(ids(told["units"])) == ["u2", "u3", "u4", "u5", "u6", "u7", "u8", "x"]
    assert told["truncated"] is False


def test_edges_of_a_lineage_point_to_what_came_before(chain: httpx2.Client) -> None:
    for direction in ("before", "both"):
        told = lineage(chain, "u6", direction=direction, depth=1)["relations"]
        assert {"source_id": "u6", "target_id": "y", "edge_type": "provenance"} in told
        assert {"source_id": "u6", "target_id": "u5", "edge_type": "causation"} in told
    told = lineage(chain, "u5", direction="after", depth=1)["relations"]
    assert {(item["source_id"], item["target_id"]) for item in told} == {("u6", "u5"), ("x", "u5")}


def test_a_diamond_is_told_once(client: httpx2.Client) -> None:
    stored(
        client,
        unit("top"),
        unit("left", relations=[edge("top")]),
        unit("right", relations=[edge("top")]),
        unit("end", relations=[edge("left"), edge("right")]),
    )
    told = lineage(client, "end", direction="before")
    assert sorted(ids(told["units"])) == ["end", "left", "right", "top"]
    assert len(told["relations"]) == 4
    told = lineage(client, "left", direction="both")
    assert sorted(ids(told["units"])) == ["end", "left", "top"]


def test_what_leads_to_something_is_not_what_shares_it(client: httpx2.Client) -> None:
    """Before means before: siblings that stand on the same unit are neither before nor after each other."""
    stored(client, unit("root"), *[unit(f"child{n}", relations=[edge("root")]) for n in range(3)])
    assert sorted(ids(lineage(client, "child0", direction="both", depth=5)["units"])) == ["child0", "root"]


def test_a_hub_is_cut_and_says_so(client: httpx2.Client) -> None:
    stored(client, unit("hub"))
    stored(client, *[unit(f"spoke{n}", relations=[edge("hub")]) for n in range(300)])
    told = lineage(client, "hub", direction="after", depth=1)
    assert told["truncated"] is True
    assert len(told["units"]) == 65
    assert lineage(client, "spoke7", direction="before", depth=3)["truncated"] is False


def test_a_lineage_that_grows_at_each_step_stays_under_its_limit(client: httpx2.Client) -> None:
    first = [unit(f"a{n}", relations=[edge("root")]) for n in range(30)]
    second = [unit(f"b{n}-{m}", relations=[edge(f"a{n}")]) for n in range(30) for m in range(30)]
    stored(client, unit("root"), *first, *second)
    told = lineage(client, "root", direction="after", depth=3)
    assert told["truncated"] is True
    assert len(told["units"]) == 500
    shown = set(ids(told["units"]))
    assert all(item["source_id"] in shown and item["target_id"] in shown for item in told["relations"])


def test_pages_are_complete_newest_first_and_without_repetition(client: httpx2.Client) -> None:
    stored(client, *[unit(f"u{n:03}", task_id="t" if n % 2 else None, timestamp=at(n)) for n in range(101)])
    newest_first = [f"u{n:03}" for n in reversed(range(101))]
    for limit in (1, 7, 100, 101, 200):
        if limit > 1:
            assert listed(client, limit=limit) == newest_first
        assert listed(client, limit=limit, task_id="t") == [name for name in newest_first if int(name[1:]) % 2]


def test_units_of_one_moment_are_paged_too(client: httpx2.Client) -> None:
    stored(client, *[unit(f"u{n:02}") for n in range(25)])
    assert listed(client, limit=4) == [f"u{n:02}" for n in reversed(range(25))]


def test_a_page_stays_where_it_is_when_newer_units_arrive(client: httpx2.Client) -> None:
    stored(client, *[unit(f"u{n}", timestamp=at(n)) for n in range(6)])
    first = client.get("/v1/units", params={"limit": "3"}).json()
    stored(client, unit("new", timestamp=at(100)), unit("backfilled", timestamp=at(1)))
    second = client.get("/v1/units", params={"limit": "3", "cursor": first["next"]}).json()
    assert ids(first["units"]) == ["u5", "u4", "u3"]
    assert ids(second["units"]) == ["u2", "u1", "backfilled"]
    third = client.get("/v1/units", params={"limit": "3", "cursor": second["next"]}).json()
    assert (ids(third["units"]), third["next"]) == (["u0"], None)


def test_a_session_and_a_task_hold_their_own(client: httpx2.Client) -> None:
    stored(client, unit("a", task_id="t1"), unit("b", session_id="s2", task_id="t2"), unit("c"))
    assert listed(client, session_id="s2") == listed(client, task_id="t2") == [], "from a session only that session is seen"
    of_all_sessions(client)
    assert listed(client, session_id="s2") == listed(client, task_id="t2") == ["b"]
    assert listed(client, session_id="session-1") == ["c", "a"]
    assert listed(client, session_id="nowhere") == listed(client, task_id="nowhere") == []
    assert write(client, unit("d", session_id="s2")).status_code == 201
    assert listed(client, session_id="s2") == ["d", "b"]
