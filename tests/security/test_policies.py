"""Who may see what: private by default, opened by policies, closed again at once, explained, and the same on every path (T2, T5)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from api.wire import ask, ids, inquire, lineage, listed, read, refused, send, stored
from conftest import Service, edge, unit

from graph.model.scope import Role
from graph.model.units import Scope

ALL_KINDS = ["tool_result", "decision", "state_snapshot", "progress_note", "constraint", "correction", "observation"]


class People:
    """Clients of one tenant by agent and session, and its admin."""

    def __init__(self, service: Service, tenant: str, stack: ExitStack) -> None:
        self._service, self._tenant, self._stack = service, tenant, stack
        self._keys: dict[tuple[str, Role], str] = {}
        self.admin = self.of("admin", role=Role.ADMIN)

    def of(self, agent: str, session: str | None = None, role: Role = Role.AGENT, **places: str) -> httpx2.Client:
        key = self._keys.setdefault((agent, role), self._service.key(self._tenant, agent, role))
        told = {**places, **({"session": session} if session is not None else {})}
        return self._stack.enter_context(self._service.client(key, **told))

    def allow(self, **policy: Any) -> str:
        answer = send(self.admin, "/v1/policies", policy)
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]


@pytest.fixture
def people(service: Service, tenant: str) -> Iterator[People]:
    with ExitStack() as stack:
        yield People(service, tenant, stack)


def seen(client: httpx2.Client) -> set[str]:
    """Everything that a caller gets to see by listing, which must be what it can read one by one."""
    found = set(listed(client))
    assert all(client.get(f"/v1/units/{name}").status_code == 200 for name in found)
    return found


def test_a_unit_is_private_to_its_agent_and_session(people: People, stranger: httpx2.Client) -> None:
    stored(people.of("a1", "s1"), unit("mine", task_id="t"), unit("noted", kind="progress_note", task_id="t"))
    stored(people.of("a1"), unit("of-no-session", task_id="t"))
    assert seen(people.of("a1", "s1")) == {"mine", "noted", "of-no-session"}
    assert seen(people.of("a1")) == {"mine", "noted", "of-no-session"}, "an agent that names no session sees all of its own"
    assert seen(people.of("a1", "s2")) == {"of-no-session"}
    for other in (people.of("a2", "s1"), people.of("a2"), stranger):
        assert seen(other) == set()
        refused(other.get("/v1/units/mine"), 404, "not_found")
        refused(inquire(other, unit_id="mine"), 404, "not_found")
        assert ask(other, task_id="t")["units"] == []
        assert ask(other, session_id="s1")["units"] == []


@pytest.mark.parametrize("role", [Role.ADMIN, Role.ANALYST, Role.PUBLISHER])
def test_who_reviews_sees_all_of_the_tenant_and_nothing_of_another(people: People, service: Service, other_tenant: str, role: Role) -> None:
    stored(people.of("a1", "s1"), unit("mine"))
    assert seen(people.of("reviewer", role=role)) == {"mine"}
    with service.client(service.key(other_tenant, "reviewer", role)) as elsewhere:
        assert seen(elsewhere) == set()


def test_what_is_published_is_open_to_everybody_in_its_place(people: People, stranger: httpx2.Client) -> None:
    publisher = people.of("publisher", "p", role=Role.PUBLISHER)
    stored(
        publisher,
        unit("rule", kind="constraint", trust="normative"),
        unit("approved", trust="approved_artifact"),
        unit("draft", trust="draft"),
    )
    stored(people.of("publisher", role=Role.PUBLISHER, organization="o"), unit("rule-of-o", kind="constraint", trust="normative"))
    assert seen(people.of("a1", "s1")) == {"rule", "approved"}
    assert seen(people.of("a1", "s1", organization="o")) == {"rule", "approved", "rule-of-o"}
    assert seen(stranger) == set()


def test_a_policy_opens_what_it_names_and_closes_at_once(people: People, service: Service, other_tenant: str) -> None:
    stored(people.of("a1", "s1"), unit("d", kind="decision"), unit("o"), unit("c", kind="constraint"))
    stored(people.of("a1", "s2"), unit("d2", kind="decision"))
    reader = people.of("a2", "s9")
    assert seen(reader) == set()
    policy = people.allow(**{"kinds": ["decision"], "from": {"agents": ["a1"], "sessions": ["s1"]}, "to": {"agents": ["a2"]}})
    assert seen(reader) == {"d"}
    assert seen(people.of("a3")) == set()
    with service.client(service.key(other_tenant, "a2")) as elsewhere:
        assert seen(elsewhere) == set()
    assert people.admin.delete(f"/v1/policies/{policy}", params={"reason": "over"}).status_code == 204
    assert seen(reader) == set()
    told = people.admin.get("/v1/policies").json()["policies"]
    assert [item["id"] for item in told] == [policy]
    assert told[0]["revoked_at"] is not None
    assert told[0]["from"] == {"agents": ["a1"], "teams": [], "sessions": ["s1"]}


def test_a_policy_ends_by_itself(people: People) -> None:
    stored(people.of("a1", "s1"), unit("d", kind="decision"))
    ends = datetime.now(UTC) + timedelta(seconds=2)
    people.allow(kinds=["decision"], expires_at=ends.isoformat())
    reader = people.of("a2")
    assert seen(reader) == {"d"}
    while datetime.now(UTC) < ends:
        time.sleep(0.1)
    assert seen(reader) == set()


def test_the_template_across_sessions_shares_decisions_and_keeps_results(people: People) -> None:
    found = {item["name"]: item["policy"] for item in people.admin.get("/v1/policies/templates").json()["templates"]}
    assert {"across-sessions", "shared-decisions", "one-session", "team-work"} <= set(found)
    for number, kind in enumerate(ALL_KINDS):
        stored(people.of("a1", "s1"), unit(f"u-{number}-{kind}", kind=kind))
    people.allow(**found["across-sessions"])
    assert {name.split("-")[2] for name in seen(people.of("a1", "s2"))} == {"decision", "constraint"}
    assert seen(people.of("a2", "s1")) == set(), "another agent's are not its own"


def test_teams_and_sessions_as_what_writer_and_reader_share(people: People) -> None:
    stored(people.of("a1", "s1"), unit("x"))
    assert send_team(people, "red", ["a1", "a2"]).status_code == 200
    by_team = people.allow(kinds=["observation"], among="team")
    assert seen(people.of("a2")) == {"x"}
    assert seen(people.of("a3")) == set()
    assert send_team(people, "red", ["a2"]).status_code == 200
    assert seen(people.of("a2")) == set(), "who left the team is not shared any more"
    people.admin.delete(f"/v1/policies/{by_team}")
    people.allow(kinds=["observation"], among="session")
    assert seen(people.of("a3", "s1")) == {"x"}
    assert seen(people.of("a3", "s2")) == seen(people.of("a3")) == set()
    assert people.admin.delete("/v1/teams/red").status_code == 204
    refused(people.admin.delete("/v1/teams/red"), 404, "not_found")


def send_team(people: People, name: str, agents: list[str]) -> httpx2.Response:
    return people.admin.put("/v1/teams", json={"id": name, "agents": agents})


def test_another_assessment_is_opened_by_a_grant_with_a_reason_that_leaves_a_trail(people: People) -> None:
    stored(people.of("a1", organization="o", assessment="first"), unit("found", kind="decision"), unit("seen"))
    reader = people.of("a1", organization="o", assessment="second")
    assert seen(reader) == set(), "the same agent, in another assessment"
    grant = {"kinds": ["decision"], "scope": {"organization_id": "o", "assessment_id": "first"}}
    refused(send(people.admin, "/v1/policies", grant), 422, "reason_missing")
    people.allow(**grant, to_scope={"organization_id": "o", "assessment_id": "second"}, reason="The second builds on the first.")
    assert trail(people) == []
    assert read(reader, "found")["id"] == "found"
    refused(reader.get("/v1/units/seen"), 404, "not_found")
    assert seen(people.of("a1", organization="o", assessment="third")) == set()
    events = trail(people)
    assert {(event["action"], event["agent_id"], event["target"], event["numbers"]["units"]) for event in events} == {
        ("cross_assessment_read", "a1", "o first", 1)
    }
    assert ids(ask(reader, unit_id="found")["units"]) == ["found"]
    assert len(trail(people)) == len(events) + 1


def trail(people: People) -> list[dict[str, Any]]:
    events = people.admin.get("/v1/audit").json()["events"]
    return [event for event in events if event["action"] == "cross_assessment_read"]


def test_a_walk_stops_at_what_may_not_be_seen_and_does_not_tell_that_it_is_there(people: People) -> None:
    """own-1 <- hidden <- own-2: written by an admin who sees both, read by the agent whose the ends are."""
    admin = people.of("admin", role=Role.ADMIN)
    stored(
        admin,
        unit("own-1", agent_id="a1", task_id="t"),
        unit("hidden", "SECRET-MARK", agent_id="a2", task_id="t", relations=[edge("own-1")]),
    )
    stored(admin, unit("own-2", agent_id="a1", task_id="t", relations=[edge("hidden"), edge("hidden", "dependency")]))
    stored(admin, unit("fix", "SECRET-MARK again", agent_id="a2", relations=[edge("own-1", "supersession")]))
    reader = people.of("a1")
    assert seen(reader) == {"own-1", "own-2"}
    assert read(reader, "own-2")["relations"] == []
    assert lineage(reader, "own-2")["relations"] == []
    for query in ({"unit_id": "own-2"}, {"unit_id": "own-1"}, {"task_id": "t"}, {"task_id": "t", "strategy": "recency"}):
        answer = inquire(reader, **query, include_history=True)
        assert answer.status_code == 200
        assert set(ids(answer.json()["units"])) <= {"own-1", "own-2"}
        for word in ("hidden", "fix", "SECRET-MARK"):
            assert word not in answer.text
    assert ids(ask(reader, unit_id="own-1")["units"])[0] == "own-1", "nobody that it knows of replaced it"


def test_an_edge_to_what_may_not_be_seen_is_an_edge_to_nothing(people: People) -> None:
    stored(people.of("a2"), unit("hidden"))
    mine = people.of("a1")
    answers = [send(mine, "/v1/units", {"units": [unit("u", relations=[edge(target)])]}) for target in ("hidden", "nowhere")]
    for answer in answers:
        refused(answer, 422, "target_not_found")
    first, second = ({**answer.json(), "trace_id": ""} for answer in answers)
    assert first == second


def test_what_was_written_can_be_sent_again_from_another_session(people: People) -> None:
    stored(people.of("a1", "s1"), unit("u", session_id="s1"))
    again = send(people.of("a1", "s2"), "/v1/units", {"units": [unit("u", session_id="s1")]})
    assert (again.status_code, again.json()["unchanged"]) == (201, 1)
    refused(send(people.of("a2", "s1"), "/v1/units", {"units": [unit("u", session_id="s1")]}), 409, "unit_conflict")


def explained(people: People, unit_id: str, agent: str, **more: str) -> dict[str, Any]:
    answer = people.admin.get("/v1/policies/explain", params={"unit_id": unit_id, "agent_id": agent, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_explaining_says_what_the_database_does_and_why(people: People) -> None:
    stored(people.of("a1", "s1"), unit("d", kind="decision"), unit("o"))
    policy = people.allow(kinds=["decision"], to={"agents": ["a2"]})
    told = explained(people, "d", "a2")
    assert told["visible"]
    assert [(rule["policy_id"], rule["opens"]) for rule in told["rules"] if rule["rule"] == "policy"] == [(policy, True)]
    told = explained(people, "o", "a2")
    assert not told["visible"]
    assert "kind observation" in told["rules"][-1]["why"]
    assert explained(people, "o", "a1")["visible"]
    assert not explained(people, "o", "a1", session_id="s2")["visible"]
    assert explained(people, "o", "boss", role="analyst")["visible"]
    refused(people.admin.get("/v1/policies/explain", params={"unit_id": "nowhere", "agent_id": "a1"}), 404, "not_found")
    refused(people.of("a1").get("/v1/policies/explain", params={"unit_id": "o", "agent_id": "a1"}), 403, "forbidden")


def test_a_bound_admin_manages_no_policies(service: Service, tenant: str, people: People) -> None:
    with service.client(service.key(tenant, "bound", Role.ADMIN, Scope(organization_id="o"))) as bound:
        refused(send(bound, "/v1/policies", {"kinds": ["decision"]}), 403, "forbidden")
        refused(bound.get("/v1/teams"), 403, "forbidden")
    assert people.admin.get("/v1/policies").json() == {"policies": []}


def test_another_tenants_policies_are_neither_seen_nor_ended(people: People, service: Service, other_tenant: str) -> None:
    policy = people.allow(kinds=["decision"])
    with service.client(service.key(other_tenant, "admin", Role.ADMIN)) as elsewhere:
        assert elsewhere.get("/v1/policies").json() == {"policies": []}
        refused(elsewhere.delete(f"/v1/policies/{policy}"), 404, "not_found")
    assert people.admin.get("/v1/policies").json()["policies"][0]["revoked_at"] is None


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"kinds": []},
        {"kinds": ["everything"]},
        {"kinds": ["decision"], "among": "friends"},
        {"kinds": ["decision"], "from": {"agents": ["has space"]}},
        {"kinds": ["decision"], "expires_at": "2020-01-01T00:00:00Z"},
        {"kinds": ["decision"], "scope": {"organization_id": None, "assessment_id": "x"}},
        {"kinds": ["decision"], "to": {"agents": [f"a{n}" for n in range(65)]}},
        {"kinds": ["decision"], "source": {"agents": [7]}},
    ],
)
def test_a_wrong_policy_is_refused_and_nothing_is_opened(people: People, wrong: dict[str, Any]) -> None:
    answer = send(people.admin, "/v1/policies", wrong)
    assert answer.status_code == 422, answer.text
    assert people.admin.get("/v1/policies").json() == {"policies": []}
