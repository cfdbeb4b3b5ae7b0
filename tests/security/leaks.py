"""The leak suite: everything that one agent wrote, tried for by everybody else through every address.

Each address is asked about names that exist and, in the same way, about names of the same length that never did. A leak is an answer that
holds a mark of what was written, or that tells the two apart.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
from api.wire import ask, send, stored
from conftest import Service, edge, unit

from graph.model.scope import Role
from graph.model.units import Scope
from graph.statements import Statements, load_all

Door = tuple[str, str]
GPT = "gpt-5.2"


@dataclass(frozen=True)
class Names:
    """What an attacker may have guessed: names that exist, or as long ones that do not."""

    units: tuple[str, ...]
    session: str
    task: str
    agent: str
    policy: str
    team: str
    key: str
    organization: str
    original: bytes

    @property
    def digest(self) -> str:
        """By which units name the original."""
        return hashlib.sha256(self.original).hexdigest()


@dataclass
class World:
    """Tenant A's agent a1 has written everything there is; the others try."""

    real: Names
    control: Names
    marks: tuple[str, ...]
    principals: dict[str, dict[str, str]]
    """Headers by who asks."""


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    params: dict[str, str] = field(default_factory=dict[str, str])
    body: Any = None
    """Bytes as they are, all else as JSON."""
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Leak:
    """What came out, where, to whom."""

    door: str
    principal: str
    what: str


Probe = Callable[[Names], Sequence[Asked]]


def _queries(names: Names) -> list[dict[str, Any]]:
    deadline = {"budget_tokens": 4_000, "deadline_ms": 20_000, "model": GPT}
    mark = names.units[0].split("-")[0]
    topics = [f"What looks as it was, never by day, in {names.task}?", f"What does {mark} say of {mark}_tool?"]
    return [
        *({"unit_id": name, **deadline} for name in names.units),
        {"unit_id": names.units[0], "strategy": "recency", **deadline},
        {"task_id": names.task, **deadline},
        {"task_id": names.task, "step": 9, "include_history": True, **deadline},
        {"task_id": names.task, "strategy": "recency", **deadline},
        {"session_id": names.session, **deadline},
        {"session_id": names.session, "strategy": "recency", **deadline},
        {"session_id": names.session, "unit_id": names.units[0], **deadline},
        *({"topic": topic, **deadline} for topic in topics),
        {"topic": topics[0], "strategy": "text", **deadline},
        {"topic": topics[0], "task_id": names.task, **deadline},
        {"topic": topics[1], "session_id": names.session, "include_history": True, **deadline},
    ]


def _writes(names: Names) -> list[Asked]:
    """Edges to what may not be seen. The writer's own id is new each time, and the unit is never stored."""
    fresh = f"try-{uuid.uuid4().hex[:12]}"
    return [
        Asked("POST", "/v1/units", body={"units": [unit(fresh, "Mine.", relations=[edge(name, kind)])]})
        for name in names.units[:2]
        for kind in ("dependency", "provenance", "supersession", "causation")
    ]


def _explained(names: Names) -> list[Asked]:
    return [
        Asked("GET", "/v1/policies/explain", {"unit_id": names.units[0], "agent_id": agent, "session_id": names.session})
        for agent in (names.agent, "a2")
    ]


PROBES: dict[Door, Probe] = {
    ("POST", "/v1/units"): _writes,
    ("GET", "/v1/units"): lambda names: [
        Asked("GET", "/v1/units", {"limit": "200"}),
        Asked("GET", "/v1/units", {"session_id": names.session}),
        Asked("GET", "/v1/units", {"task_id": names.task}),
        Asked("GET", "/v1/units", {"limit": "200"}, headers={"Lastro-Organization": names.organization}),
    ],
    ("GET", "/v1/units/{unit_id:path}"): lambda names: [Asked("GET", f"/v1/units/{name}") for name in names.units],
    ("GET", "/v1/units/{unit_id:path}/lineage"): lambda names: [
        Asked("GET", f"/v1/units/{name}/lineage", {"depth": "10"}) for name in names.units
    ],
    ("POST", "/v1/context"): lambda names: [Asked("POST", "/v1/context", body=query) for query in _queries(names)],
    # Of all that is written: the bytes themselves, by whoever has them, a unit that names the digest, and the digest alone.
    ("PUT", "/v1/attachments/{sha256}"): lambda names: [
        Asked("PUT", f"/v1/attachments/{names.digest}", body=names.original),
        Asked("PUT", f"/v1/attachments/{names.digest}", body=b"a guess"),
    ],
    ("GET", "/v1/attachments/{sha256}"): lambda names: [Asked("GET", f"/v1/attachments/{names.digest}")],
    ("POST", "/v1/keys"): lambda _: [Asked("POST", "/v1/keys", body={"agent_id": ""})],
    ("GET", "/v1/keys"): lambda _: [Asked("GET", "/v1/keys")],
    ("POST", "/v1/keys/{key_id}/rotate"): lambda names: [Asked("POST", f"/v1/keys/{names.key}/rotate", body={})],
    ("DELETE", "/v1/keys/{key_id}"): lambda names: [Asked("DELETE", f"/v1/keys/{names.key}")],
    ("POST", "/v1/policies"): lambda _: [Asked("POST", "/v1/policies", body={"kinds": []})],
    ("GET", "/v1/policies"): lambda _: [Asked("GET", "/v1/policies")],
    ("GET", "/v1/policies/templates"): lambda _: [Asked("GET", "/v1/policies/templates")],
    ("GET", "/v1/policies/explain"): _explained,
    ("DELETE", "/v1/policies/{policy_id}"): lambda names: [Asked("DELETE", f"/v1/policies/{names.policy}")],
    ("GET", "/v1/teams"): lambda _: [Asked("GET", "/v1/teams")],
    ("PUT", "/v1/teams"): lambda _: [Asked("PUT", "/v1/teams", body={"id": ""})],
    ("DELETE", "/v1/teams/{team_id:path}"): lambda names: [Asked("DELETE", f"/v1/teams/{names.team}")],
    ("GET", "/v1/quotas"): lambda _: [Asked("GET", "/v1/quotas")],
    ("PUT", "/v1/quotas/{subject_type}/{subject_id:path}"): lambda names: [
        Asked("PUT", f"/v1/quotas/agent/{names.agent}", body={"units": -1})
    ],
    ("DELETE", "/v1/quotas/{subject_type}/{subject_id:path}"): lambda names: [Asked("DELETE", f"/v1/quotas/agent/{names.agent}")],
    ("GET", "/v1/usage"): lambda names: [
        Asked("GET", "/v1/usage"),
        Asked("GET", "/v1/usage", {"subject_type": "agent", "subject_id": names.agent}),
        Asked("GET", "/v1/usage", {"subject_type": "session", "subject_id": names.session, "format": "csv"}),
    ],
    ("GET", "/v1/usage/me"): lambda _: [Asked("GET", "/v1/usage/me")],
    ("GET", "/v1/ledger"): lambda names: [
        # Whoever tries this has asked for the other names before, and may see that.
        Asked("GET", "/v1/ledger", {"group_by": "model,hour"}),
        Asked("GET", "/v1/ledger", {"task_id": f"{names.task}-asked"}),
        Asked("GET", "/v1/ledger", {"task_id": f"{names.task}-asked", "agent_id": names.agent, "format": "csv"}),
        Asked("GET", "/v1/ledger", {"model": f"{GPT}-{names.task}", "group_by": "agent,session,task", "format": "ndjson"}),
    ],
    ("GET", "/v1/audit"): lambda _: [Asked("GET", "/v1/audit", {"limit": "200"})],
    ("GET", "/v1/audit/export"): lambda _: [Asked("GET", "/v1/audit/export")],
    ("DELETE", "/v1/units/{unit_id:path}"): lambda names: [Asked("DELETE", f"/v1/units/{name}") for name in names.units],
    ("DELETE", "/v1/tenant"): lambda _: [Asked("DELETE", "/v1/tenant", body={"tenant_id": "somebody-elses"})],
    ("GET", "/v1/retention"): lambda _: [Asked("GET", "/v1/retention")],
    ("PUT", "/v1/retention"): lambda _: [Asked("PUT", "/v1/retention", body={"kinds": {"nothing": -1}})],
    ("POST", "/v1/retention/run"): lambda _: [Asked("POST", "/v1/retention/run", body={"dry_run": True})],
    ("GET", "/v1/schema"): lambda _: [Asked("GET", "/v1/schema")],
    ("GET", "/healthz"): lambda _: [Asked("GET", "/healthz")],
    ("GET", "/readyz"): lambda _: [Asked("GET", "/readyz")],
    ("GET", "/openapi.json"): lambda _: [Asked("GET", "/openapi.json")],
}


def build(service: Service) -> World:
    """A fresh world on a running service."""
    mark = uuid.uuid4().hex[:8]
    tenant, elsewhere = f"a-{mark}", f"b-{mark}"
    names = _names(f"MARK{mark}")
    admin = service.key(tenant, "MARKadmin", Role.ADMIN)
    with service.client(service.key(tenant, names.agent), session=names.session) as writer, service.client(admin) as manager:
        assert writer.put(f"/v1/attachments/{names.digest}", content=names.original).status_code == 201
        stored(writer, *_units(names, f"MARK{mark}"))
        ask(writer, task_id=f"{names.task}-asked", model=f"{GPT}-{names.task}")
        ask(writer, task_id=names.task, model=GPT)
        service.run(service.lastro.ledger.flush())
        with service.client(service.key(tenant, names.agent), session=names.session, organization=names.organization) as inside:
            stored(inside, unit(names.units[4], f"In a place of its own: MARK{mark}.", task_id=names.task))
        policy = send(manager, "/v1/policies", {"kinds": ["decision"], "to": {"agents": ["nobody"]}, "reason": f"MARK{mark} why"}).json()[
            "id"
        ]
        assert manager.put("/v1/teams", json={"id": names.team, "agents": [names.agent]}).status_code == 200
        key = manager.get("/v1/keys").json()["keys"][0]["id"]
    real = Names(**{**names.__dict__, "policy": policy, "key": key})
    bound = Scope(organization_id="other-place")
    revoked = service.key(tenant, names.agent)
    service.run(service.lastro.registry.revoke_key(service.lastro.registry.local(tenant, "operator"), revoked.split("_")[1]))
    principals = {
        "another tenant's admin": _headers(service.key(elsewhere, "admin", Role.ADMIN)),
        "another tenant's agent of the same name": _headers(service.key(f"c-{mark}", names.agent), names.session),
        "another tenant's analyst": _headers(service.key(elsewhere, "analyst", Role.ANALYST)),
        "another agent of the tenant": _headers(service.key(tenant, "a2"), names.session),
        "the agent itself in another session": _headers(service.key(tenant, names.agent), "another-session"),
        "an admin bound to another organisation": _headers(service.key(tenant, "bound", Role.ADMIN, bound)),
        "a revoked key of the agent": _headers(revoked, names.session),
        "nobody": {},
    }
    return World(real, _names("0" * len(f"MARK{mark}")), (f"MARK{mark}", "MARKadmin", policy, key), principals)


def _names(word: str) -> Names:
    return Names(
        units=tuple(f"{word}-{name}" for name in ("limit", "call", "result", "fix", "place")),
        session=f"{word}-session",
        task=f"{word}-task",
        agent=f"{word}-agent",
        policy="0" * 16,
        team=f"{word}-team",
        key="0" * 16,
        organization=f"{word}-organization",
        original=f"{word} in a picture".encode(),
    )


def _units(names: Names, mark: str) -> list[dict[str, Any]]:
    limit, call, result, fix, _ = names.units
    told = {
        "task_id": names.task,
        "actor": f"{mark} actor",
        "provenance": [{"source": f"{mark} book", "uri": f"https://example.org/{mark}"}],
    }
    return [
        unit(limit, f"Never {mark} by day.", "constraint", **told, labels=[f"{mark}-label"]),
        unit(call, f"Looks at {mark}.", "decision", **told, tool={"name": f"{mark}_tool", "arguments": {"what": mark}}),
        unit(
            result,
            f"It is {mark}.",
            "tool_result",
            **told,
            tool={"name": f"{mark}_tool"},
            relations=[edge(call), edge(limit, "dependency")],
        ),
        unit(
            fix,
            f"It was not {mark}.",
            "correction",
            **told,
            relations=[edge(result, "supersession")],
            attachments=[{"uri": f"file:///{mark}.png", "media_type": "image/png", "sha256": names.digest}],
        ),
    ]


def _headers(key: str, session: str | None = None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", **({"Lastro-Session": session} if session is not None else {})}


def find_leaks(service: Service, world: World, doors: Sequence[Door] | None = None, only: Sequence[str] | None = None) -> Iterator[Leak]:
    """Every leak through these doors, to these principals; all of both by default."""
    for principal, headers in world.principals.items():
        if only is not None and principal not in only:
            continue
        with httpx2.Client(base_url=service.url, headers=headers, timeout=60) as client:
            for door in doors or list(PROBES):
                real, control = PROBES[door](world.real), PROBES[door](world.control)
                for asked, never in zip(real, control, strict=True):
                    answers = [_answer(client, world, request) for request in (asked, never)]
                    yield from _compare(" ".join(door), principal, world, asked, answers)


@dataclass(frozen=True)
class _Answered:
    status: int
    text: str
    shape: str


def _answer(client: httpx2.Client, world: World, asked: Asked) -> _Answered:
    content = asked.body if asked.body is None or isinstance(asked.body, bytes) else json.dumps(asked.body).encode()
    told = {**asked.headers, **({"Content-Type": "application/json"} if content is not None else {})}
    answer = client.request(asked.method, asked.path, params=asked.params, content=content, headers=told)
    # Headers too, but for what is of the moment.
    headers = "\n".join(
        f"{name}: {value}" for name, value in answer.headers.items() if name not in {"date", "lastro-trace", "content-length"}
    )
    text = f"{headers}\n\n{answer.text}"
    return _Answered(answer.status_code, text, _without_the_moment(text))


def _without_the_moment(text: str) -> str:
    """What must be the same for two requests that differ in names alone: without traces and times."""
    text = re.sub(r'"(trace_id|since|until|server|at)":\s*"[^"]*"', "", text)
    text = re.sub(r"try-[0-9a-f]{12}", "", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "", text)
    text = re.sub(r'"timings_ms":\s*\{[^}]*\}', "", text)
    return re.sub(r'"(ms|requests|reads|writes|tokens|tokens_read|remaining|used)":\s*[0-9.]+', "", text)


def _compare(door: str, principal: str, world: World, asked: Asked, answers: list[_Answered]) -> Iterator[Leak]:
    real, never = answers
    yield from (Leak(door, principal, f"tells {mark[:4]}…") for mark in world.marks if mark in real.text)
    if real.status != never.status:
        yield Leak(door, principal, f"{real.status} for what is there, {never.status} for what is not")
    elif real.shape != never.shape:
        yield Leak(door, principal, f"answers {asked.method} otherwise for what is there")


@contextmanager
def mutated(service: Service, name: str, change: Callable[[str], str]) -> Generator[None]:
    """A leak put in on purpose: a statement with another text, for the time of the block."""
    database = service.lastro.database
    kept = database.statements
    every = [replace(item, text=change(item.text)) if item.name == name else item for item in load_all()]
    assert every != load_all(), "the mutation changes something"
    database.statements = Statements(kept.dialect, every)
    # What was answered by the right statement must not hide the wrong one, nor the other way round.
    service.lastro.cache.clear()
    try:
        yield
    finally:
        database.statements = kept
        service.lastro.cache.clear()
