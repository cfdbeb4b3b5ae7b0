"""Erasing a tenant: everything of it and nothing else, whatever kills it in between, with a certificate at the end (U12)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from api.wire import listed, read, refused, stored, write
from conftest import Service, edge, unit
from faults.serving import LASTRO, START_S, Serving
from governance.store import Store, store_of

from app.client import LastroClient
from graph.model.erasure import ErasureProgress, TenantErasure
from graph.model.scope import Role
from graph.model.units import Scope

UNITS = 1_200


@pytest.fixture
def store(service: Service) -> Iterator[Store]:
    with store_of(service) as found:
        yield found


def erase_tenant(client: httpx2.Client, tenant: str, **more: Any) -> httpx2.Response:
    return client.request("DELETE", "/v1/tenant", json={"tenant": tenant, **more})


def fill(client: httpx2.Client, count: int = UNITS) -> None:
    """A chain, all of it on one hub, in tasks and a session."""
    stored(client, unit("hub", "The hub.", task_id="t-0"))
    for start in range(0, count, 400):
        batch = [
            unit(
                f"u{n}",
                f"Fact {n}.",
                task_id=f"t-{n % 7}",
                relations=[edge("hub", "dependency"), *([edge(f"u{n - 1}", "provenance")] if n else [])],
            )
            for n in range(start, min(start + 400, count))
        ]
        stored(client, *batch)


def certified(certificate: dict[str, Any], tenant: str) -> None:
    """The checksum is of what it says, and the scan found nothing."""
    told = {name: certificate[name] for name in ("tenant", "nodes", "edges")}
    times = {name: certificate[name].replace("Z", "+00:00") for name in ("begun_at", "ended_at")}
    assert certificate["tenant"] == tenant
    assert certificate["sha256"] == hashlib.sha256(orjson.dumps({**told, **times}, option=orjson.OPT_SORT_KEYS)).hexdigest()
    assert certificate["scan"]["found"] == 0
    assert "none bore it" in certificate["scan"]["statement"]
    assert certificate["begun_at"] < certificate["ended_at"] < certificate["scan"]["at"]


def test_everything_of_a_tenant_goes_and_nothing_of_another(
    service: Service, tenant: str, client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client, store: Store
) -> None:
    fill(client)
    stored(client, unit("gone", "Gone before."))
    assert client.delete("/v1/units/gone").status_code == 204
    assert admin.post("/v1/policies", json={"kinds": ["decision"], "reason": "to learn"}).status_code == 201
    assert admin.put(f"/v1/quotas/tenant/{tenant}", json={"units": 100_000}).status_code == 200
    assert admin.put("/v1/retention", json={"rules": [{"kind": "event", "days": 9}]}).status_code == 200
    stored(stranger, unit("hub", "The hub."), unit("u1", relations=[edge("hub", "dependency")]))
    other = listed(stranger)
    nodes = {
        row["label"]: row["nodes"]
        for row in store.rows("MATCH (n) WHERE n.tenant_id = $tenant RETURN labels(n)[0] AS label, count(n) AS nodes", tenant=tenant)
    }
    assert {"ContextUnit", "Task", "Session", "Agent", "Tombstone", "Event", "ApiKey", "Tenant", "Policy", "Quota"} <= nodes.keys()
    answer = erase_tenant(admin, tenant, reason="The contract ended.")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    progress = [line["progress"]["nodes"] for line in lines[:-1]]
    assert len(progress) >= 3
    assert progress == sorted(progress)
    certificate = lines[-1]["certificate"]
    certified(certificate, tenant)
    deleted = certificate["nodes"]
    for label in ("ContextUnit", "Task", "Session", "Agent", "Tombstone", "ApiKey", "Tenant", "Policy", "Quota"):
        assert deleted[label] == nodes[label], label
    assert deleted["Event"] == nodes["Event"] + 1, "the erasure's own"
    assert certificate["edges"]["DEPENDENCY"] == UNITS
    assert certificate["edges"]["PROVENANCE"] == UNITS - 1
    assert certificate["edges"]["IN_SESSION"] == UNITS + 1
    assert store.of_tenant(tenant) == []
    for who in (client, admin):
        refused(who.get("/v1/units"), 401, "unauthenticated")
    assert listed(stranger) == other
    assert [relation["target_id"] for relation in read(stranger, "u1")["relations"]] == ["hub"]
    # A tenant of the same name is a new one, and knows nothing of what was erased in the old.
    with service.client(service.key(tenant), session="s") as anew:
        assert listed(anew) == []
        stored(anew, unit("gone", "Gone before."))


def test_it_is_for_admins_of_the_whole_tenant_who_repeat_its_name(
    service: Service, tenant: str, client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client
) -> None:
    stored(client, unit("u"))
    stored(stranger, unit("u"))
    for role in (Role.AGENT, Role.PUBLISHER, Role.ANALYST):
        with service.client(service.key(tenant, role=role)) as other:
            refused(erase_tenant(other, tenant), 403, "forbidden")
    with service.client(service.key(tenant, role=Role.ADMIN, bound=Scope(organization_id="o"))) as bound:
        refused(erase_tenant(bound, tenant), 403, "forbidden")
    for name in (tenant + "x", "stranger", ""):
        refused(erase_tenant(admin, name), 422, "invalid_field" if name else "invalid_id")
    refused(admin.request("DELETE", "/v1/tenant", json={}), 422, "invalid_field")
    assert listed(client) == listed(stranger) == ["u"]


def test_nothing_is_written_while_it_runs_and_anybody_can_go_on(
    service: Service, tenant: str, client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client, store: Store
) -> None:
    """Begun and then left alone, as by a kill: the background job finds it."""
    fill(client, 30)
    lastro = service.lastro
    scope = lastro.registry.local(tenant, "boss")
    service.run(lastro.erasure.begin_tenant(scope, TenantErasure(tenant=tenant)))
    refused(write(client, unit("late")), 409, "tenant_being_erased")
    refused(client.delete("/v1/units/u1"), 409, "tenant_being_erased")
    refused(admin.put("/v1/retention", json={"rules": []}), 409, "tenant_being_erased")
    stored(stranger, unit("late"))
    assert service.run(lastro.retention_job.once())
    assert store.of_tenant(tenant) == []
    refused(client.get("/v1/units"), 401, "unauthenticated")
    again = service.run(lastro.erasure.tenant(scope, TenantErasure(tenant=tenant), lambda _: None))
    certified(again.model_dump(mode="json"), tenant)
    assert again.nodes["ContextUnit"] == 31
    assert listed(stranger) == ["late"]


def test_processes_that_erase_one_tenant_at_once_get_one_certificate_and_writers_between_them_nothing(
    service: Service, stranger: httpx2.Client, store: Store
) -> None:
    """Who waits for the tenant's node while it is deleted holds a node without properties: neither record nor unit may come of it."""
    stored(stranger, unit("u"))
    lastro = service.lastro
    for _ in range(2):  # each certificate looks at every node that there is
        name = f"tenant-{uuid.uuid4().hex[:12]}"
        scope = lastro.registry.local(name, "boss")
        asked = TenantErasure(tenant=name)
        with service.client(service.key(name), session="s") as client, ThreadPoolExecutor(5) as at_once:
            erasing = [at_once.submit(service.run, lastro.erasure.tenant(scope, asked, lambda _: None)) for _ in range(3)]
            writing = [at_once.submit(write, client, unit(f"late-{n}")) for n in range(2)]
            certificates = [one.result() for one in erasing]
            assert {one.result().status_code for one in writing} <= {201, 401, 409}
        assert len({one.sha256 for one in certificates}) == 1
        certified(certificates[0].model_dump(mode="json"), name)
        assert store.of_tenant(name) == []
    assert listed(stranger) == ["u"]


def test_the_client_tells_progress_and_gets_the_certificate(
    service: Service, tenant: str, client: httpx2.Client, stranger: httpx2.Client
) -> None:
    fill(client, 40)
    stored(stranger, unit("u"))
    told: list[ErasureProgress] = []

    async def work() -> dict[str, Any]:
        async with LastroClient(service.url, service.key(tenant, "boss", Role.ADMIN)) as admin:
            return (await admin.erase_tenant(TenantErasure(tenant=tenant), told.append)).model_dump(mode="json")

    certified(asyncio.run(work()), tenant)
    assert told
    assert listed(stranger) == ["u"]


def new_key(serving: Serving, tenant: str, role: str) -> str:
    made = subprocess.run(
        [LASTRO, "keys", "create", "--tenant", tenant, "--agent", "a", "--role", role, "--json"],
        env=serving.environment(),
        capture_output=True,
        check=True,
        timeout=START_S,
    )
    return json.loads(made.stdout)["key"]


def erase_by_command(serving: Serving, **environment: str) -> dict[str, Any]:
    done = subprocess.run(
        [LASTRO, "erase", "--tenant", "acme", "--yes", "--json"],
        env={**serving.environment(), **environment},
        capture_output=True,
        check=False,
        timeout=START_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    found = Serving(tmp_path / "data")
    yield found
    if found.process is not None and found.process.poll() is None:
        found.signal(signal.SIGTERM)


def test_killed_in_the_middle_it_goes_on_where_it_was(serving: Serving) -> None:
    """The service and its engine are killed between two batches; a command goes on through the next service, keys being the last to go."""
    boss, other = new_key(serving, "acme", "admin"), new_key(serving, "other", "agent")
    serving.key = boss
    serving.start()
    with serving.client() as client, httpx2.Client(base_url=serving.url, headers={"Authorization": f"Bearer {other}"}) as neighbour:
        fill(client, 4_000)
        stored(neighbour, unit("theirs", "Of another tenant."))
    far = 0
    address = f"{serving.url}/v1/tenant"
    with httpx2.stream("DELETE", address, json={"tenant": "acme"}, headers={"Authorization": f"Bearer {boss}"}, timeout=60) as answer:
        for line in answer.iter_lines():
            far = json.loads(line)["progress"]["nodes"]
            if far >= 1_000:
                os.kill(serving.engine_pid, signal.SIGKILL)
                serving.signal(signal.SIGKILL)
                break
    assert 1_000 <= far < 4_000
    serving.start()
    with serving.client() as client:
        refused(write(client, unit("late")), 409, "tenant_being_erased")
        left = client.get("/v1/units/hub")
        assert left.status_code == 200, "the oldest goes last"
    certificate = erase_by_command(serving, LASTRO_URL=serving.url, LASTRO_KEY=boss)
    certified(certificate, "acme")
    assert certificate["nodes"]["ContextUnit"] == 4_001
    assert certificate["edges"]["DEPENDENCY"] == 4_000
    assert certificate["edges"]["PROVENANCE"] == 3_999
    with serving.client() as client, httpx2.Client(base_url=serving.url, headers={"Authorization": f"Bearer {other}"}) as neighbour:
        refused(client.get("/v1/units"), 401, "unauthenticated")
        assert listed(neighbour) == ["theirs"]
        assert neighbour.get("/readyz").json()["retention"] == "running"
    serving.signal(signal.SIGTERM)
    again = erase_by_command(serving)
    certified(again, "acme")
    assert again["sha256"] == certificate["sha256"], "the certificate can be asked for again on the store itself"
