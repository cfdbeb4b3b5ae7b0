"""Anything about a topic: found by its words, by what stands beside it and by the names that it shares, within what the caller may see
(R2, R6, S3, S5, S6, S7, S8, S9).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from api.wire import ask, ids, inquire, refused, stored, write
from conftest import Service, edge, unit
from governance.store import store_of

from graph.model.scope import Role

CROWD = 450
"""More units with the same word than the index is asked for at first."""


def about(client: httpx2.Client, topic: str, **more: Any) -> list[str]:
    return ids(ask(client, topic=topic, budget_tokens=4_000, **more)["units"])


def reasons(answer: dict[str, Any]) -> dict[str, str]:
    return {item["id"]: item["reason"] for item in answer["units"]}


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("A decisão foi adiada por causa do fornecedor.", "decisoes"),
        ("The evaluations of the running jobs were late.", "evaluation of a run"),
        ("As avaliações dos comitês saíram.", "avaliacao do comite"),
        ("The alert superset.alert.delivery fired twice.", "superset.alert.delivery"),
        ("The alert superset.alert.delivery fired twice.", "what is delivery of alerts"),
        ("Slack answered not_in_channel.", "NOT_IN_CHANNEL"),
        ("The bucket is in s3, zone eu-west-1.", "s3"),
        ("東京タワーは高いです。", "東京タワー"),
        ("Der Müller heißt Groß.", "muller"),
        ("He called getUserName on node.js.", "user name in Node.js"),
    ],
)
def test_words_are_found_as_soon_as_they_are_written(client: httpx2.Client, stranger: httpx2.Client, said: str, asked: str) -> None:
    stored(client, unit("hit", said), unit("other", "Nothing of the kind."))
    stored(stranger, unit("theirs", said))
    assert about(client, asked)[0] == "hit"
    assert about(stranger, asked) == ["theirs"]


@pytest.mark.parametrize(
    "topic",
    [
        "AND",
        "OR NOT",
        "a AND b",
        '+-&|!(){}[]^"~*?:\\/<>=',
        "content:* OR tenant_id:*",
        "access:[* TO *]",
        '"unclosed',
        "(((",
        "/.*/",
        "roam~2 ^9",
        "\\",
        "' OR 1=1 //",
        "$query {limit: 1}",
        "\u200f\u202e\U0001f468\u200d\U0001f469",
        "of the and",
        "x" * 20_000,
        " ".join(f"word{n}" for n in range(20_000)),
    ],
)
def test_any_text_may_be_asked(client: httpx2.Client, stranger: httpx2.Client, topic: str) -> None:
    stored(stranger, unit("theirs", topic[:200] + " roam content access"))
    stored(client, unit("mine", "Something else."))
    assert "theirs" not in about(client, topic)


def test_of_a_topic_with_too_many_words_the_telling_ones_are_kept(client: httpx2.Client, stranger: httpx2.Client) -> None:
    stored(client, unit("hit", "It broke at superset.alert.delivery."))
    stored(stranger, unit("hit", "It broke at superset.alert.delivery."))
    topic = " ".join(f"plain{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(300)) + " superset.alert.delivery"
    answer = ask(client, topic=topic)
    assert ids(answer["units"]) == ["hit"]
    dropped = answer["receipt"]["search"]["words_dropped"]
    assert len(dropped) == 100
    assert answer["receipt"]["search"]["words_dropped_count"] > 200
    assert "superset.alert.delivery" not in dropped
    assert ask(client, topic="superset.alert.delivery")["receipt"]["search"]["words_dropped"] == []


def test_without_an_embedder_the_receipt_says_so(client: httpx2.Client, stranger: httpx2.Client) -> None:
    stored(client, unit("hit", "The export is slow."))
    stored(stranger, unit("hit", "The export is slow."))
    receipt = ask(client, topic="export")["receipt"]
    assert (receipt["query_type"], receipt["strategy"], receipt["fallback"]) == ("topic", "retrieval", False)
    assert receipt["search"]["vectors"] == "off"
    assert receipt["search"]["found_by_text"] == 1
    assert any("No embedder" in note for note in receipt["notes"])


def test_nothing_known_is_an_answer_and_no_error(client: httpx2.Client, stranger: httpx2.Client) -> None:
    stored(stranger, unit("theirs", "The export is slow."))
    answer = ask(client, topic="export")
    assert answer["units"] == []
    assert answer["receipt"]["left_out_counts"] == {}
    assert answer["receipt"]["search"]["found_by_text"] == 0


def test_a_small_tenant_beside_a_large_one_gets_all_of_its_own(service: Service, client: httpx2.Client, stranger: httpx2.Client) -> None:
    for start in range(0, CROWD, 150):
        stored(stranger, *(unit(f"n{n}", f"quibble quibble {n}") for n in range(start, start + 150)))
    stored(client, unit("a", "One quibble among much else that is said here at some length."), unit("b", "A quibble."))
    assert set(about(client, "quibble")) == {"a", "b"}


def test_an_agent_that_may_see_little_of_its_tenant_gets_all_of_that(
    service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client
) -> None:
    with service.client(service.key(tenant, "crowd"), session="crowd") as crowd:
        for start in range(0, CROWD, 150):
            stored(crowd, *(unit(f"n{n}", f"quibble quibble {n}") for n in range(start, start + 150)))
    stored(client, unit("a", "One quibble among much else that is said here at some length."), unit("b", "A quibble."))
    stored(stranger, unit("a", "A quibble."))
    answer = ask(client, topic="quibble")
    assert set(ids(answer["units"])) == {"a", "b"}
    assert answer["receipt"]["search"]["found_by_text"] == 2
    assert answer["receipt"]["search"]["text_complete"] is True


def test_the_words_of_others_move_no_score(service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client) -> None:
    mine = [unit("a", "The export failed at night."), unit("b", "The night was calm."), unit("c", "An export to the warehouse.")]
    stored(client, *mine)
    before = [(item["id"], item["relevance_score"]) for item in ask(client, topic="export at night", budget_tokens=900)["units"]]
    with service.client(service.key(tenant, "crowd"), session="crowd") as crowd:
        stored(crowd, *(unit(f"n{n}", f"night {n}") for n in range(100)))
    stored(stranger, *(unit(f"n{n}", f"export {n}") for n in range(100)))
    after = [(item["id"], item["relevance_score"]) for item in ask(client, topic="export at night", budget_tokens=901)["units"]]
    assert after == before


def test_what_stands_beside_a_found_unit_comes_too(service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client) -> None:
    talk = ["Good morning.", "Where do the numbers go?", "Into the blue ledger.", "Fine, thanks.", "See you.", "Bye."]
    stored(client, *(unit(f"t{n}", text) for n, text in enumerate(talk)))
    stored(stranger, *(unit(f"t{n}", text) for n, text in enumerate(talk)))
    # Another agent's units in the same session are between them, and out of sight.
    with service.client(service.key(tenant, "agent-2"), session="session-1") as other:
        stored(other, unit("theirs", "Their own business."))
    answer = ask(client, topic="ledger")
    assert reasons(answer) == {"t2": "text", "t0": "neighbour", "t1": "neighbour", "t3": "neighbour", "t4": "neighbour"}
    assert answer["units"][0]["id"] == "t2"
    assert answer["receipt"]["search"]["neighbours"] == 4
    assert "theirs" not in about(client, "ledger blue numbers bye")


def test_units_that_share_a_name_meet_though_nobody_linked_them(
    service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client
) -> None:
    film = "Ed Wood\nEd Wood is a film about a director, made by Tim Burton."
    person = "Tim Burton\nHe was born in Burbank."
    stored(client, unit("film", film, session_id="s1"), unit("filler", "Something.", session_id="s1"))
    with service.client(service.key(tenant), session="s2") as later:
        stored(later, unit("person", person))
    stored(stranger, unit("film", film), unit("person", person))
    with service.client(service.key(tenant, "agent-2"), session="x") as other:
        stored(other, unit("theirs", "Ed Wood\nTheir own words on Tim Burton."))
    with service.client(service.key(tenant)) as everywhere:
        answer = ask(everywhere, topic="Where was the maker of Ed Wood born?")
        assert reasons(answer)["person"] in {"text", "name"}
        assert answer["receipt"]["search"]["names_crossed"] >= 1
        assert "theirs" not in ids(answer["units"])
        assert reasons(ask(everywhere, topic="Ed Wood"))["person"] == "name"
    with service.client(service.key(tenant, "agent-2"), session="x") as other:
        assert about(other, "Ed Wood") == ["theirs"]


def test_a_step_meets_what_shares_its_names(service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client) -> None:
    stored(client, unit("now", "Retrying after E1234 at billing.invoice.send.", task_id="t", task_step=3))
    for other in (client, stranger):
        stored(other, unit("before", "billing.invoice.send needs the new certificate.", task_id="older", task_step=1))
    answer = ask(client, task_id="t", step=3)
    assert (answer["receipt"]["query_type"], answer["receipt"]["strategy"]) == ("step", "hybrid")
    assert reasons(answer) == {"now": "start", "before": "name"}


def test_what_was_replaced_gives_way_to_what_replaced_it(client: httpx2.Client, stranger: httpx2.Client) -> None:
    for who in (client, stranger):
        stored(who, unit("old", "The limit of the quibble queue is 40."))
    between = datetime.now(UTC).isoformat()
    stored(client, unit("new", "It is 50 now.", "correction", relations=[edge("old", "supersession")]))
    assert about(client, "limit of the quibble queue", kinds=None) == ["new"]
    assert set(about(client, "limit of the quibble queue", include_history=True)) == {"new", "old"}
    assert about(client, "limit of the quibble queue", as_of=between) == ["old"]
    assert about(stranger, "limit of the quibble queue") == ["old"]


def test_what_was_true_twice_is_told_twice_when_history_is_asked_for(client: httpx2.Client, stranger: httpx2.Client) -> None:
    for who in (client, stranger):
        stored(who, unit("a", "The quibble limit is 40."))
        stored(who, unit("b", "The quibble limit is 50.", relations=[edge("a", "supersession")]))
        stored(who, unit("c", "The quibble limit is 40.", relations=[edge("b", "supersession")]))
    assert about(client, "quibble limit") == ["c"]
    assert set(about(client, "quibble limit", include_history=True)) == {"a", "b", "c"}


def test_kinds_and_steps_are_kept_to(client: httpx2.Client, stranger: httpx2.Client) -> None:
    for who in (client, stranger):
        stored(
            who,
            unit("a", "The quibble of Monday.", "decision", task_id="t", task_step=1),
            unit("b", "The quibble of Tuesday.", task_id="t", task_step=2),
            unit("c", "The quibble of Wednesday.", "decision", task_id="t", task_step=5),
        )
    assert set(about(client, "quibble", kinds=["decision"])) == {"a", "c"}
    assert set(about(client, "quibble", task_id="t", step=2)) == {"a", "b"}
    assert set(about(client, "quibble", task_id="t")) == {"a", "b", "c"}


def test_a_topic_in_a_place_prefers_what_fits_both(client: httpx2.Client, stranger: httpx2.Client) -> None:
    for who in (client, stranger):
        stored(
            who,
            unit("here", "The quibble is about the export.", task_id="t"),
            unit("elsewhere", "The quibble is about the export too.", task_id="u"),
            unit("beside", "Nothing of it.", task_id="t"),
        )
    answer = ask(client, topic="quibble export", task_id="t")
    assert (answer["receipt"]["query_type"], answer["receipt"]["strategy"]) == ("topic_around", "hybrid")
    assert ids(answer["units"])[0] == "here"
    assert set(ids(answer["units"])) == {"here", "elsewhere", "beside"}


def test_many_rules_that_share_a_word_do_not_drown_what_was_asked_for(
    service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client
) -> None:
    """A rule over a task comes first whatever is asked; one that a search finds is a text among others."""
    with service.client(service.key(tenant, "press", Role.PUBLISHER)) as press:
        rules = [
            unit(f"r{n}", f"Control {n}: the quibble register of area {n} must be kept.", "constraint", trust="normative")
            for n in range(60)
        ]
        stored(press, *rules, unit("over", "No quibble by day.", "constraint", trust="normative", task_id="t"))
    for who in (client, stranger):
        stored(who, unit("answer", "The quibble of host alpha was opened by the night export.", task_id="t"))
    asked = "Who opened the quibble of host alpha?"
    assert about(client, asked)[0] == "answer"
    assert about(stranger, asked) == ["answer"]
    in_place = ask(client, topic=asked, task_id="t", budget_tokens=120)
    assert set(ids(in_place["units"])[:2]) == {"answer", "over"}


def test_a_question_is_searched_for_where_a_step_is_asked_for(client: httpx2.Client, stranger: httpx2.Client) -> None:
    for who in (client, stranger):
        stored(who, unit("now", "Retrying.", task_id="t", task_step=3), unit("far", "The quibble limit is 40.", task_id="u"))
    assert ids(ask(client, task_id="t", step=3)["units"]) == ["now"]
    answer = ask(client, task_id="t", step=3, question="What is the quibble limit?", model="gpt-5.2")
    assert reasons(answer) == {"now": "start", "far": "text"}
    assert answer["receipt"]["search"]["found_by_text"] == 1


def test_the_words_of_a_call_are_found_too(client: httpx2.Client, stranger: httpx2.Client) -> None:
    tool = {"name": "billing_lookup", "arguments": {"customer": {"tier": "platinum"}, "months": [7, None, True]}}
    for who in (client, stranger):
        stored(who, unit("call", "Looked.", "decision", tool=tool))
    for topic in ("billing_lookup", "platinum", "customer tier", "7 months"):
        assert about(client, topic) == ["call"], topic


def test_the_same_said_again_costs_once(client: httpx2.Client, stranger: httpx2.Client) -> None:
    for who in (client, stranger):
        stored(
            who,
            unit("a", "The quibble of host alpha is 3 days old."),
            unit("b", "**The quibble of host ALPHA is 3 days old!**"),
            unit("c", "The quibble of host beta is 3 days old."),
            unit("d", "The quibble of host alpha is 4 days old."),
            unit("e", "The quibble of host alpha is not 3 days old."),
        )
    answer = ask(client, topic="quibble")
    assert len({"a", "b"} & set(ids(answer["units"]))) == 1
    assert {"c", "d", "e"} <= set(ids(answer["units"]))
    assert answer["receipt"]["left_out_counts"] == {"duplicate": 1}


def test_the_same_topic_gives_the_same_answer(client: httpx2.Client, stranger: httpx2.Client) -> None:
    for who in (client, stranger):
        stored(who, *(unit(f"n{n}", f"quibble number {n % 3}") for n in range(30)))
    first = ask(client, topic="quibble", budget_tokens=500)
    second = ask(client, topic="quibble", budget_tokens=500, deadline_ms=30_000)
    assert first["units"] == second["units"]


def test_an_erased_unit_is_found_by_nothing_and_its_own_names_go_with_it(
    service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client
) -> None:
    for who in (client, stranger):
        stored(
            who,
            unit("gone", "Zebediah Quux spoke of quibbles at corp.quux.internal."),
            unit("stays", "Nobody else but Zebediah Quux knows."),
        )
    assert client.delete("/v1/units/gone").status_code == 204
    assert about(client, "quibbles internal") == []
    assert about(client, "Zebediah Quux") == ["stays"]
    assert set(about(stranger, "quibbles")) == {"gone", "stays"}
    with store_of(service) as store:
        rows = store.rows("MATCH (e:Entity) WHERE e.tenant_id = $tenant RETURN e.id AS id ORDER BY id", tenant=tenant)
    assert [row["id"] for row in rows] == ["zebediah quux"]


def test_a_policy_opens_a_search_and_its_end_closes_it(
    service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client
) -> None:
    stored(client, unit("d", "The quibble is decided.", "decision"), unit("r", "The quibble is raw."))
    stored(stranger, unit("d", "The quibble is decided.", "decision"))
    with (
        service.client(service.key(tenant, "agent-2"), session="x") as other,
        service.client(service.key(tenant, "boss", Role.ADMIN)) as boss,
    ):
        assert about(other, "quibble") == []
        made = boss.post("/v1/policies", json={"kinds": ["decision"], "reason": "to learn"})
        assert made.status_code == 201, made.text
        assert about(other, "quibble") == ["d"]
        assert boss.delete(f"/v1/policies/{made.json()['id']}").status_code in {200, 204}
        assert about(other, "quibble") == []
        assert set(about(boss, "quibble")) == {"d", "r"}


def test_what_a_strategy_cannot_start_from_is_refused(client: httpx2.Client, stranger: httpx2.Client) -> None:
    for strategy in ("traversal", "tiers", "recency"):
        refused(inquire(client, topic="x", strategy=strategy), 422, "query_not_supported", field="strategy")
    for strategy in ("retrieval", "text"):
        refused(inquire(client, task_id="t", strategy=strategy), 422, "query_not_supported", field="strategy")
    refused(inquire(client, topic="x", task_id="t", session_id="s"), 422, "query_not_supported")
    assert write(stranger, unit("u", "x")).status_code == 201
    assert about(client, "x", strategy="text") == []
