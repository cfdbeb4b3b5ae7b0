"""Erasing a unit: nothing of it is left anywhere, it does not come back, and what stood on it says so (U12)."""

from __future__ import annotations

import json
import unicodedata
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from api.wire import GPT, ask, ids, inquire, lineage, listed, read, refused, result, stored, write
from conftest import Service, edge, unit
from governance.store import Store, store_of

from app.importing import import_file
from app.operations import LocalOperations
from graph.connection import WriteTransaction
from graph.erasure_store import EDGES_AT_ONCE
from graph.model.base import errors_by_code
from graph.model.erasure import normalised_value
from graph.model.errors import UnitErased
from graph.model.scope import AuthorizedScope, Role
from graph.statements import Row

HUB = 3_000


@pytest.fixture
def store(service: Service) -> Iterator[Store]:
    with store_of(service) as found:
        yield found


def erased(client: httpx2.Client, unit_id: str, **params: str) -> str:
    """Erase a unit that must be there; how the audit trail names it."""
    answer = client.delete(f"/v1/units/{unit_id}", params=params)
    assert answer.status_code == 204, answer.text
    assert answer.content == b""
    return answer.headers["lastro-tombstone"]


def marked(client: httpx2.Client, *unit_ids: str) -> list[bool]:
    return [read(client, unit_id)["metadata"]["source_erased"] for unit_id in unit_ids]


def rich(unit_id: str, marker: str, **more: Any) -> dict[str, Any]:
    """A unit that says the marker everywhere where something can be said."""
    return unit(
        unit_id,
        f"Called look for {marker}.",
        "decision",
        actor=f"actor {marker}",
        provenance=[{"source": f"a book of {marker}", "uri": f"https://example.org/{marker}", "locator": marker, "method": marker}],
        tool={"name": f"look {marker}", "call_id": f"call-{marker}", "arguments": {marker: [marker, {"deep": marker}]}},
        labels=[f"label-{marker}"],
        attachments=[{"uri": f"file:///{marker}.png", "media_type": "image/png", "sha256": "0" * 64}],
        **more,
    )


def test_nothing_of_an_erased_unit_is_found_anywhere(
    client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client, store: Store, service: Service, tenant: str
) -> None:
    marker, unit_id = f"marker{uuid.uuid4().hex}", f"unit/{uuid.uuid4().hex}"
    before = {"relations": [edge("first", "dependency"), edge("first", "supersession"), edge("question")], "task_id": "t", "task_step": 2}
    stored(client, unit("first", task_id="t"), unit("question", task_id="t"), rich(unit_id, marker, **before))
    stored(
        client,
        unit("answer", "It was seen.", "tool_result", task_id="t", task_step=3, tool={"name": "look"}, relations=[edge(unit_id)]),
        unit("derived", "It follows.", task_id="t", relations=[edge(unit_id, "provenance")]),
    )
    stored(stranger, unit("theirs", f"Also {marker}."))
    assert len(store.places_of(marker)) > 6
    assert store.places_of(unit_id)
    tombstone = erased(client, unit_id, reason="asked for")
    stranger.delete("/v1/units/theirs")
    assert store.places_of(marker) == []
    assert store.places_of(unit_id) == []
    if service.engine_name == "embedded":
        assert store.places_in_sql(marker) == store.places_in_sql(unit_id) == []
    assert store.rows("MATCH (n) WHERE n.tenant_id = $tenant AND n.id STARTS WITH 'erased ' RETURN n.id AS id", tenant=tenant) == []
    doors = [
        *(client.get(f"/v1/units/{name}") for name in ("first", "question", "answer", "derived")),
        *(client.get(f"/v1/units/{name}/lineage", params={"depth": "10"}) for name in ("first", "question", "answer", "derived")),
        client.get("/v1/units"),
        client.get("/v1/units", params={"task_id": "t"}),
        inquire(client, task_id="t", model=GPT),
        inquire(client, task_id="t", include_history=True),
        inquire(client, unit_id="derived", include_history=True, model=GPT),
        inquire(client, session_id="session-1", model=GPT),
        admin.get("/v1/audit"),
        admin.get("/v1/audit/export"),
    ]
    for answer in doors:
        assert answer.status_code == 200, answer.text
        assert marker not in answer.text
        assert unit_id not in answer.text
    assert tombstone in doors[-1].text
    for answer in (client.get(f"/v1/units/{unit_id}"), client.get(f"/v1/units/{unit_id}/lineage"), inquire(client, unit_id=unit_id)):
        refused(answer, 404, "not_found")
    for again in (write(client, rich("other", marker)), write(client, unit(unit_id, "Something else."))):
        assert marker not in refused(again, 409, "unit_erased", index=0)["title"]
        assert marker not in again.text


def test_an_erased_unit_is_as_one_that_never_was(client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client) -> None:
    stored(client, unit("u", "A fact."))
    stored(stranger, unit("theirs", "Another's."))
    erased(client, "u")

    def told(answer: httpx2.Response) -> dict[str, Any]:
        refused(answer, 404, "not_found")
        return {**answer.json(), "trace_id": ""}

    for who in (client, admin):
        never = told(who.delete("/v1/units/never"))
        assert told(who.delete("/v1/units/u")) == told(who.delete("/v1/units/theirs")) == never
        assert told(who.get("/v1/units/u")) == told(who.get("/v1/units/never"))
    refused(write(client, unit("v", relations=[edge("u")])), 422, "target_not_found")
    assert read(stranger, "theirs")["content"] == "Another's."


def test_an_agent_erases_its_own_and_an_admin_what_it_sees(
    service: Service, tenant: str, client: httpx2.Client, admin: httpx2.Client
) -> None:
    stored(client, unit("mine"), unit("ours"))
    stored(admin, unit("boss's"))
    with (
        service.client(service.key(tenant, "other")) as other,
        service.client(service.key(tenant, role=Role.ANALYST)) as analyst,
        service.client(service.key(tenant, role=Role.PUBLISHER)) as publisher,
        service.client(service.key(tenant), session="s", organization="o") as inside,
    ):
        refused(other.delete("/v1/units/mine"), 404, "not_found")
        for nobody in (analyst, publisher):
            refused(nobody.delete("/v1/units/mine"), 403, "forbidden")
        stored(inside, unit("inside"))
        refused(admin.delete("/v1/units/inside"), 404, "not_found")
        assert admin.delete("/v1/units/inside", headers={"Lastro-Organization": "o"}).status_code == 204
    refused(client.delete("/v1/units/boss's"), 404, "not_found")
    erased(client, "mine")
    erased(admin, "ours")
    assert listed(admin) == ["boss's"]


def test_an_agent_cannot_erase_what_it_only_may_read(service: Service, tenant: str, client: httpx2.Client, admin: httpx2.Client) -> None:
    stored(client, unit("shared", kind="decision"))
    answer = admin.post("/v1/policies", json={"kinds": ["decision"], "reason": "to learn"})
    assert answer.status_code == 201, answer.text
    with service.client(service.key(tenant, "other"), session="s") as other:
        assert read(other, "shared")["content"]
        refused(other.delete("/v1/units/shared"), 403, "forbidden")
    assert marked(client, "shared") == [False]


SPELLINGS = {
    "as it was": "José paid 12 € to Straße & Co.\nOn Monday.",
    "capitals": "JOSÉ PAID 12 € TO STRASSE & CO.\nON MONDAY.",
    "decomposed": unicodedata.normalize("NFD", "José paid 12 € to Straße & Co.\nOn Monday."),
    "white space": "  José\tpaid  12\u00a0€ to\u2003Straße &  Co.\r\n\r\nOn  Monday. \n",
    "none of it": "Josépaid12€toStraße&Co.OnMonday.",
    "full width": "\uff2aosé paid \uff11\uff12 € to Straße \uff06 Co.\nOn Monday.",
    "zero width": "Jo\u200bsé pa\u00adid 12 € to Straße & Co.\u2060\nOn Monday.",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=list(SPELLINGS))
def test_a_value_does_not_come_back_in_any_spelling(spelling: str) -> None:
    assert normalised_value(spelling) == normalised_value(SPELLINGS["as it was"])


def test_other_values_are_told_apart() -> None:
    told = [
        "José paid 12 €.",
        "Jose paid 12 €.",
        "José paid 13 €.",
        "José paid 12 $.",
        "😀",
        "😁",
        "\U0001fae9",
        "\ue000",
        "1",
        "\u0661",
        "\u0131",
        "j",
    ]
    assert len({normalised_value(text) for text in told}) == len(told)


def test_what_was_erased_is_refused_here_and_taken_elsewhere(client: httpx2.Client, stranger: httpx2.Client) -> None:
    stored(client, unit("u", SPELLINGS["as it was"]), unit("copy", SPELLINGS["capitals"]), unit("kept", "Other."))
    erased(client, "u")
    for number, spelling in enumerate(SPELLINGS.values()):
        kinds = ("observation", "constraint")
        told = write(client, unit("fresh", "Fresh."), unit(f"new-{number}", spelling, kinds[number % 2]))
        refused(told, 409, "unit_erased", index=1, id=f"new-{number}")
    refused(write(client, unit("u", "Other words.")), 409, "unit_erased", index=0, id="u")
    assert sorted(listed(client)) == ["copy", "kept"], "nothing of a refused batch is stored"
    again = write(client, unit("copy", SPELLINGS["capitals"]))
    assert (again.status_code, again.json()["unchanged"]) == (201, 1), "what is there already stays, and may be sent again"
    stored(client, unit("U", "Ids are told apart by case."))
    stored(stranger, unit("u", SPELLINGS["as it was"]))
    many = [unit(f"many-{number}", f"Fact {number}.") for number in range(100)]
    stored(client, *many)
    more = [unit(f"more-{number}", f"More {number}.") for number in range(50)]
    refused(write(client, *many[:40], *more, unit("last", SPELLINGS["none of it"])), 409, "unit_erased", index=90)
    assert write(client, *many[:40], *more, unit("copy", SPELLINGS["capitals"])).json()["unchanged"] == 41


def test_only_a_tenant_that_erased_something_is_asked_for_it(
    client: httpx2.Client, stranger: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write costs another round trip only where there are tombstones."""
    asked: list[str] = []
    run = WriteTransaction.run

    async def noted(self: WriteTransaction, name: str, scope: AuthorizedScope | None = None, **params: object) -> list[Row]:
        asked.append(name)
        return await run(self, name, scope, **params)

    stored(client, unit("u", "A fact."))
    erased(client, "u")
    monkeypatch.setattr(WriteTransaction, "run", noted)
    stored(stranger, unit("u", "A fact."))
    assert not [name for name in asked if name.startswith("erasure/")]
    stored(client, unit("v", "Another fact."))
    assert [name for name in asked if name.startswith("erasure/")] == ["erasure/read_tombstones"]


def test_a_commonplace_can_be_erased_without_refusing_it_to_others(client: httpx2.Client) -> None:
    stored(client, unit("a", "Done."))
    erased(client, "a", refuse="id")
    stored(client, unit("b", "Done."))
    refused(write(client, unit("a", "Done.")), 409, "unit_erased", index=0)
    refused(client.delete("/v1/units/b", params={"refuse": "all"}), 422, "invalid_field", field="refuse")
    refused(client.delete("/v1/units/b", params={"reason": "x" * 600}), 422, "invalid_field", field="reason")
    assert read(client, "b")["content"] == "Done."


def test_an_import_does_not_bring_it_back(
    service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client, tmp_path: Path
) -> None:
    stored(client, unit("u", "A secret recipe."))
    stored(stranger, unit("u", "A secret recipe."))
    with service.client(service.key(tenant, "boss", Role.ADMIN)) as admin:
        erased(admin, "u")
    for name, lines in {
        "same": [unit("u", "A secret recipe.")],
        "another id": [unit("first"), unit("v", "A  SECRET recipe.")],
    }.items():
        file = tmp_path / f"{name}.ndjson"
        file.write_text("\n".join(json.dumps(line) for line in lines))
        operations = LocalOperations(service.lastro, service.lastro.registry.local(tenant, "cli"))
        with pytest.raises(UnitErased) as refusal:
            service.run(import_file(operations, file))
        assert refusal.value.where is not None
        assert refusal.value.where.index == len(lines) - 1
        assert "recipe" not in str(refusal.value)
    assert errors_by_code()["unit_erased"] is UnitErased
    assert listed(client) == []
    assert read(stranger, "u")["content"] == "A secret recipe."


def test_what_was_derived_is_marked_over_three_steps(client: httpx2.Client, stranger: httpx2.Client) -> None:
    graph = [
        unit("source", "The source."),
        unit("quote", relations=[edge("source", "provenance")]),
        unit("needs", relations=[edge("source", "dependency")]),
        unit("follows", relations=[edge("source")]),
        unit("summary", relations=[edge("quote", "provenance")]),
        unit("report", relations=[edge("summary", "provenance"), edge("aside", "provenance")]),
        unit("from-needs", relations=[edge("needs", "provenance")]),
        unit("only-after-quote", relations=[edge("quote")]),
        unit("needs-quote", relations=[edge("quote", "dependency")]),
        unit("from-follows", relations=[edge("follows", "provenance")]),
        unit("aside", "Beside it."),
    ]
    stored(client, *graph)
    stored(stranger, *graph)
    erased(client, "source")
    names = [item["id"] for item in graph[1:]]
    yes = {"quote", "needs", "follows", "summary", "report", "from-needs"}
    assert dict(zip(names, marked(client, *names), strict=True)) == {name: name in yes for name in names}
    assert marked(stranger, *names) == [False] * len(names)
    for name in names:
        assert "source" not in {relation["target_id"] for relation in read(client, name)["relations"]}
    answer = ask(client, unit_id="summary")
    assert {item["id"] for item in answer["units"] if item["metadata"]["source_erased"]} == yes & set(ids(answer["units"]))
    assert {item["id"]: item["metadata"]["source_erased"] for item in lineage(client, "report", depth=3)["units"]}["quote"] is True
    # The mark is handed on to what is made later, over any number of units of one batch; and nobody can take it off or put it on.
    later = [
        unit("later", relations=[edge("report", "provenance")]),
        unit("latest", relations=[edge("later", "provenance")]),
        unit("beside", relations=[edge("report"), edge("report", "dependency")]),
    ]
    stored(client, *later)
    assert marked(client, "later", "latest", "beside") == [True, True, False]
    lying = [{**item, "metadata": {"source_erased": flag}} for item, flag in zip(later, (False, False, True), strict=True)]
    assert write(client, *lying).json() == {"written": 0, "unchanged": 3, "ids": ["later", "latest", "beside"]}
    assert marked(client, "later", "latest", "beside") == [True, True, False]


def test_a_hub_is_marked_whole(client: httpx2.Client, stranger: httpx2.Client, store: Store, tenant: str) -> None:
    """Three times as many as one transaction takes, at the first step and at the second."""
    assert HUB >= 3 * EDGES_AT_ONCE
    stored(client, unit("hub", "The hub."), unit("way", relations=[edge("hub", "provenance")]))
    stored(stranger, unit("hub", "The hub."), unit("spoke-0", relations=[edge("hub", "provenance")]))
    for start in range(0, HUB, 500):
        spokes = [unit(f"spoke-{n}", f"Spoke {n}.", relations=[edge("hub", "provenance")]) for n in range(start, start + 500)]
        second = [unit(f"second-{n}", f"Second {n}.", relations=[edge("way", "provenance")]) for n in range(start, start + 500)]
        stored(client, *spokes, *second)
    stored(client, unit("third", relations=[edge("second-7", "provenance")]), unit("end", relations=[edge("spoke-9", "provenance")]))
    erased(client, "hub")
    counts = store.rows(
        "MATCH (u:ContextUnit {tenant_id: $tenant}) RETURN coalesce(u.source_erased, false) AS marked, count(u) AS units", tenant=tenant
    )
    assert {row["marked"]: row["units"] for row in counts} == {True: 2 * HUB + 3}
    assert store.rows("MATCH (e:Erasure {tenant_id: $tenant}) RETURN e.id AS id", tenant=tenant) == []
    assert marked(client, "spoke-0", "second-0", "third", "end") == [True] * 4
    assert marked(stranger, "hub", "spoke-0") == [False, False]


def test_an_erasure_that_broke_off_is_out_of_sight_and_is_finished(
    service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client
) -> None:
    """As after a kill between two transactions: the first is done, and nobody goes on."""
    stored(client, unit("hub", "The hub."), unit("root", "The root."))
    stored(stranger, unit("hub", "The hub."))
    for start in range(0, 1_500, 500):
        stored(client, *[unit(f"s-{n}", f"Spoke {n}.", relations=[edge("hub", "provenance")]) for n in range(start, start + 500)])
    lastro = service.lastro
    scope = lastro.registry.local(tenant, "operator")
    service.run(lastro.erasure.unit(scope, "hub", within_s=0))
    refused(client.get("/v1/units/hub"), 404, "not_found")
    assert "hub" not in listed(client, limit=200)
    assert len(listed(client, limit=200)) == 1_501
    for n in (0, 700, 1_499):
        assert read(client, f"s-{n}")["relations"] == []
        assert ids(lineage(client, f"s-{n}")["units"]) == [f"s-{n}"]
        assert ids(ask(client, unit_id=f"s-{n}")["units"]) == [f"s-{n}"]
    refused(write(client, unit("new", relations=[edge("hub")])), 422, "target_not_found")
    assert service.run(lastro.retention_job.once(left_alone_s=0))
    assert all(marked(client, "s-0", "s-700", "s-1499"))
    assert marked(client, "root") == marked(stranger, "hub") == [False]


def test_what_it_replaced_and_what_it_answered_forget_it(client: httpx2.Client, stranger: httpx2.Client) -> None:
    both = [
        unit("old", "Old.", task_id="t"),
        unit("new", "New.", "correction", task_id="t", relations=[edge("old", "supersession")]),
        unit("call", "Called it.", "decision", task_id="t", tool={"name": "look", "call_id": "c"}),
        result("said", "call", 1, "It said so.", task_id="t"),
    ]
    for who in (client, stranger):
        stored(who, *both)
        assert sorted(ids(ask(who, task_id="t")["units"])) == ["call", "new", "said"]
    erased(client, "new")
    erased(client, "said")
    assert sorted(ids(ask(client, task_id="t")["units"])) == ["call", "old"], "what was replaced stands again"
    assert sorted(ids(ask(stranger, task_id="t")["units"])) == ["call", "new", "said"]


def test_a_full_list_of_superseders_fills_up_again(client: httpx2.Client, store: Store, tenant: str, stranger: httpx2.Client) -> None:
    call = unit("call", "Called it.", "decision", tool={"name": "look", "call_id": "c"})
    stored(client, unit("old"), call)
    stored(stranger, unit("old"))
    for n in range(10):
        stored(client, unit(f"n{n}", f"Newer {n}.", relations=[edge("old", "supersession")]), result(f"r{n}", "call", n, f"Answer {n}."))

    def lists() -> tuple[list[str], list[str]]:
        text = "MATCH (u:ContextUnit {tenant_id: $tenant, id: $id}) RETURN u.superseder_ids AS newer, u.result_ids AS results"
        old, called = (store.rows(text, tenant=tenant, id=name)[0] for name in ("old", "call"))
        return old["newer"], called["results"]

    assert lists() == ([f"n{n}" for n in range(2, 10)], [f"r{n}" for n in range(8)])
    for name in ("n5", "r3", "n0", "r9"):
        erased(client, name)
    assert lists() == (["n1", "n2", "n3", "n4", "n6", "n7", "n8", "n9"], ["r0", "r1", "r2", "r4", "r5", "r6", "r7", "r8"])
    assert marked(stranger, "old") == [False]


def test_one_erases_while_another_writes_what_depends_on_it(client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client) -> None:
    """Either the new unit is there and marked, or it is refused because its target is gone; the edge never leads nowhere."""
    rounds = 12
    seen: set[int] = set()
    stored(stranger, *[unit(f"target-{n}", f"Target {n}.") for n in range(rounds)])
    with ThreadPoolExecutor(2) as pool:
        for n in range(rounds):
            stored(client, unit(f"target-{n}", f"Target {n}."))
            user = unit(f"user-{n}", f"User {n}.", relations=[edge(f"target-{n}", "dependency")])
            if n % 2:
                erasing, writing = pool.submit(admin.delete, f"/v1/units/target-{n}"), pool.submit(write, client, user)
            else:
                writing, erasing = pool.submit(write, client, user), pool.submit(admin.delete, f"/v1/units/target-{n}")
            gone, wrote = erasing.result(), writing.result()
            assert gone.status_code == 204, gone.text
            seen.add(wrote.status_code)
            if wrote.status_code == 201:
                assert marked(client, f"user-{n}") == [True]
                assert read(client, f"user-{n}")["relations"] == []
            else:
                refused(wrote, 422, "target_not_found")
                refused(client.get(f"/v1/units/user-{n}"), 404, "not_found")
    assert seen <= {201, 422}
    assert not any(marked(stranger, *[f"target-{n}" for n in range(rounds)]))


def test_two_erase_the_same_and_one_of_them_did(client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client) -> None:
    stored(client, unit("u", "A fact."))
    stored(stranger, unit("u", "A fact."))
    with ThreadPoolExecutor(2) as pool:
        answers = [future.result() for future in [pool.submit(who.delete, "/v1/units/u") for who in (client, admin)]]
    assert sorted(answer.status_code for answer in answers) == [204, 404]
    events = [event for event in admin.get("/v1/audit").json()["events"] if event["action"] == "unit_erased"]
    assert len(events) == 1
    assert read(stranger, "u")["content"] == "A fact."


def test_the_audit_trail_tells_who_and_why_and_not_what(client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client) -> None:
    stored(client, unit("the-unit", "The content."))
    stored(stranger, unit("the-unit", "The content."))
    tombstone = erased(client, "the-unit", reason="Its subject asked for it.")
    other = erased(stranger, "the-unit")
    assert tombstone != other, "the same id has another hash in another tenant"
    answer = admin.get("/v1/audit")
    event = next(event for event in answer.json()["events"] if event["action"] == "unit_erased")
    assert (event["target"], event["agent_id"], event["reason"]) == (tombstone, "agent-1", "Its subject asked for it.")
    assert "the-unit" not in answer.text
    assert "content" not in answer.text


def test_what_was_erased_no_longer_counts(client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client, tenant: str) -> None:
    assert admin.put(f"/v1/quotas/tenant/{tenant}", json={"units": 2}).status_code == 200
    stored(client, unit("a", "One."), unit("b", "Two."))
    stored(stranger, unit("a", "One."), unit("b", "Two."), unit("c", "Three."))
    assert write(client, unit("c", "Three.")).status_code == 429
    erased(client, "a")
    stored(client, unit("c", "Three."))
    assert write(client, unit("d", "Four.")).status_code == 429
