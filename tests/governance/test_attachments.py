"""U14: originals: read by who sees a unit that opens them, counted, kept, compared with their digest, and erased with their unit."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from api.wire import refused, send, stored
from conftest import Service, edge, unit
from governance.store import Store, store_of
from typer.testing import CliRunner

from app.attachments.attachments import Attachments
from app.attachments.objects import FolderObjects
from app.attachments.sweeping import SweepingJob
from app.cli.main import app
from app.client import LastroClient
from graph.attachment_store import AttachmentStore
from graph.lease_store import LeaseStore
from graph.model.attachments import StoredAttachment, tenant_folder
from graph.model.errors import AttachmentBusy, NotFound
from graph.model.scope import Role

HTML = b"<html><script>alert(1)</script></html>"
DAY = timedelta(days=1, seconds=60)


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def put(client: httpx2.Client, content: bytes, media_type: str | None = "text/html", digest: str | None = None) -> httpx2.Response:
    headers = {} if media_type is None else {"Content-Type": media_type}
    return client.put(f"/v1/attachments/{digest or sha(content)}", content=content, headers=headers)


def kept(client: httpx2.Client, content: bytes) -> str:
    answer = put(client, content)
    assert answer.status_code == 201, answer.text
    return sha(content)


def get(client: httpx2.Client, content: bytes) -> httpx2.Response:
    return client.get(f"/v1/attachments/{sha(content)}")


def naming(id: str, *contents: bytes, kind: str = "observation", **more: Any) -> dict[str, Any]:
    attachments = [{"uri": f"attachment:{sha(each)}", "media_type": "text/html", "sha256": sha(each)} for each in contents]
    return unit(id, f"What {id} shows.", kind, attachments=attachments, **more)


def unseen(client: httpx2.Client, content: bytes) -> None:
    refused(get(client, content), 404, "not_found")


@pytest.fixture
def store(service: Service) -> Iterator[Store]:
    with store_of(service) as found:
        yield found


@pytest.fixture
def files(service: Service, tenant: str) -> Path:
    """Where the tenant's originals lie."""
    return service.settings.data / "attachments" / tenant_folder(tenant)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def used_bytes(service: Service, tenant: str, subject: str = "tenant", name: str | None = None) -> int:
    with service.client(service.key(tenant, "counter", Role.ADMIN)) as admin:
        rows = admin.get("/v1/usage", params={"subject_type": subject, "subject_id": name or tenant}).json()["rows"]
    return rows[0]["bytes"] if rows else 0


def sweeper(service: Service, lease: str | None = None) -> SweepingJob:
    """A job as a replica has it, under a lease of the test's own."""
    lastro = service.lastro
    return SweepingJob(lastro.attachments, LeaseStore(lastro.database), lastro.registry.local, lease=lease or f"test {uuid.uuid4().hex}")


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


def test_an_original_is_read_by_who_sees_a_unit_that_opens_it(service: Service, tenant: str, client: httpx2.Client, files: Path) -> None:
    answer = put(client, HTML, "text/html; charset=utf-8")
    assert (answer.status_code, answer.json()) == (201, {"sha256": sha(HTML), "bytes": len(HTML), "media_type": "text/html"})
    assert put(client, HTML).json() == answer.json()
    unseen(client, HTML)
    stored(client, naming("page", HTML))
    found = get(client, HTML)
    assert (found.status_code, found.content) == (200, HTML)
    assert found.headers["content-type"].startswith("text/html")
    assert found.headers["content-disposition"] == f'attachment; filename="{sha(HTML)}"'
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert int(found.headers["content-length"]) == len(HTML)
    assert names(files) == [sha(HTML)]
    with service.client(service.key(tenant, "other"), session="session-1") as other:
        unseen(other, HTML)
        with service.client(service.key(tenant, "boss", Role.ADMIN)) as boss:
            assert get(boss, HTML).content == HTML
            policy = {"kinds": ["observation"], "to": {"agents": ["other"]}}
            shared = boss.post("/v1/policies", json=policy).json()["id"]
            assert get(other, HTML).content == HTML
            assert boss.delete(f"/v1/policies/{shared}").status_code == 204
        unseen(other, HTML)


def test_another_tenant_gets_the_same_answer_for_what_is_and_what_is_not(client: httpx2.Client, stranger: httpx2.Client) -> None:
    kept(client, HTML)
    stored(client, naming("page", HTML))
    told = [get(stranger, content).json() | {"trace_id": ""} for content in (HTML, b"never stored")]
    assert told[0] == told[1]
    # Its own of the same bytes is its own.
    kept(stranger, HTML)
    stored(stranger, naming("page", HTML))
    assert client.delete("/v1/units/page").status_code == 204
    unseen(client, HTML)
    assert get(stranger, HTML).content == HTML


def test_to_know_a_digest_is_not_enough(service: Service, tenant: str, client: httpx2.Client) -> None:
    """Whoever saw a digest somewhere could name it in a unit of its own, which it sees."""
    secret = b"what only agent-1 has"
    kept(client, secret)
    stored(client, naming("page", secret))
    with service.client(service.key(tenant, "thief"), session="session-1") as thief:
        stored(thief, naming("mine", secret))
        unseen(thief, secret)
        # With the bytes themselves it learns nothing, and nothing tells it that they were there.
        before = used_bytes(service, tenant, "agent", "thief")
        assert put(thief, secret).json()["bytes"] == len(secret)
        assert used_bytes(service, tenant, "agent", "thief") == before + len(secret)
        assert get(thief, secret).content == secret


def test_what_an_admin_stored_is_no_more_open_than_what_an_agent_stored(client: httpx2.Client, admin: httpx2.Client, files: Path) -> None:
    """Else a digest of what is easily guessed would tell that an admin has it, and keep it past the admin's own erasure."""
    kept(admin, HTML)
    stored(admin, naming("the-admins", HTML))
    stored(client, naming("page", HTML))
    unseen(client, HTML)
    assert get(admin, HTML).content == HTML
    assert admin.delete("/v1/units/the-admins").status_code == 204
    unseen(client, HTML)
    unseen(admin, HTML)
    assert names(files) == []


def test_places_keep_apart(service: Service, tenant: str) -> None:
    key = service.key(tenant)
    with (
        service.client(key, session="s", organization="one") as one,
        service.client(key, session="s", organization="two") as two,
        service.client(key, session="s") as above,
    ):
        kept(one, HTML)
        stored(two, naming("in-two", HTML))
        stored(above, naming("above", HTML))
        for where in (one, two, above):
            unseen(where, HTML)
        stored(one, naming("in-one", HTML))
        assert get(one, HTML).content == HTML
        for where in (two, above):
            unseen(where, HTML)


def test_a_unit_may_come_before_its_original(client: httpx2.Client, service: Service) -> None:
    stored(client, naming("page", HTML))
    unseen(client, HTML)
    kept(client, HTML)
    assert get(client, HTML).content == HTML
    assert service.run(sweeper(service).once(datetime.now(UTC) + DAY)) is True
    assert get(client, HTML).content == HTML


def test_what_is_not_what_it_says_is_refused_and_leaves_nothing(service: Service, tenant: str, client: httpx2.Client, files: Path) -> None:
    refused(put(client, HTML, digest=sha(b"other")), 422, "attachment_mismatch")
    refused(put(client, HTML, digest="A" * 64), 422, "invalid_field", field="sha256")
    refused(put(client, HTML, digest="..%2f" + "0" * 61), 404, "not_found")
    refused(put(client, HTML, media_type="no media type"), 422, "invalid_field", field="content-type")
    too_large = b"x" * (service.settings.max_attachment_bytes + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service.lastro.attachments, "most_bytes", 1_000)
        refused(put(client, too_large[:1_001]), 413, "attachment_too_large")
        # Also when nobody says beforehand how much will come.
        headers = {"Content-Type": "image/png"}
        answer = client.put(f"/v1/attachments/{sha(HTML)}", content=(too_large[:600] for _ in range(3)), headers=headers)
        refused(answer, 413, "attachment_too_large")
        assert put(client, too_large[:1_000]).status_code == 201
    assert names(files) == [sha(too_large[:1_000])]
    assert names(service.settings.data / "attachments" / "incoming") == []
    assert used_bytes(service, tenant) == 1_000


def test_an_empty_one_and_one_of_megabytes_are_kept_as_they_are(client: httpx2.Client) -> None:
    large = bytes(range(256)) * 20_000
    for content in (b"", large):
        kept(client, content)
        stored(client, naming(f"page-{len(content)}", content))
        assert get(client, content).content == content


def test_bytes_count_for_quotas_and_are_released(service: Service, tenant: str, client: httpx2.Client, admin: httpx2.Client) -> None:
    assert admin.put("/v1/quotas/agent/agent-1", json={"bytes": 1_000}).status_code == 200
    content = b"x" * 900
    kept(client, content)
    kept(client, content)
    assert used_bytes(service, tenant, "session", "session-1") == 900
    problem = refused(put(client, b"y" * 101), 429, "quota_exceeded")
    assert problem["quota"]["limit"] == "bytes"
    refused(send(client, "/v1/units", {"units": [unit("long", "z" * 101)]}), 429, "quota_exceeded")
    stored(client, naming("page", content))
    assert client.delete("/v1/units/page").status_code == 204
    assert (used_bytes(service, tenant), used_bytes(service, tenant, "agent", "agent-1")) == (0, 0)
    kept(client, b"y" * 101)


def test_it_is_erased_with_the_last_unit_that_opens_it(
    service: Service, tenant: str, client: httpx2.Client, files: Path, store: Store
) -> None:
    both, alone = b"named by two", b"named by one"
    for content in (both, alone):
        kept(client, content)
    stored(client, naming("a", both, alone), naming("b", both))
    with service.client(service.key(tenant, "other"), session="s") as other:
        kept(other, both)
        stored(other, naming("theirs", both))
        assert client.delete("/v1/units/a").status_code == 204
        assert names(files) == [sha(both)]
        unseen(client, alone)
        assert get(client, both).content == both
        assert client.delete("/v1/units/b").status_code == 204
        unseen(client, both)
        assert get(other, both).content == both, "another's original of the same bytes is another's"
        assert other.delete("/v1/units/theirs").status_code == 204
        unseen(other, both)
    assert names(files) == []
    assert store.rows("MATCH (n) WHERE n.tenant_id = $tenant AND (n:Original OR n:Attachment) RETURN n.sha256 AS id", tenant=tenant) == []


def test_what_stands_behind_a_fork_of_erasure_keeps_what_it_names(client: httpx2.Client) -> None:
    kept(client, HTML)
    stored(client, naming("source", HTML), naming("derived", HTML, relations=[edge("source", "provenance")]))
    assert client.delete("/v1/units/source").status_code == 204
    assert get(client, HTML).content == HTML


def test_an_original_that_is_about_to_be_named_outlives_the_erasure_of_anothers(
    service: Service, tenant: str, client: httpx2.Client
) -> None:
    kept(client, HTML)
    stored(client, naming("page", HTML))
    with service.client(service.key(tenant, "other"), session="s") as other:
        kept(other, HTML)
        assert client.delete("/v1/units/page").status_code == 204
        stored(other, naming("theirs", HTML))
        assert get(other, HTML).content == HTML


def test_retention_takes_it_along(
    service: Service, tenant: str, client: httpx2.Client, admin: httpx2.Client, files: Path, store: Store
) -> None:
    kept(client, HTML)
    stored(client, naming("old", HTML))
    assert store.rows("MATCH (u:ContextUnit {tenant_id: $tenant, id: 'old'}) SET u.recorded_us = 1 RETURN u.id AS id", tenant=tenant)
    assert admin.put("/v1/retention", json={"rules": [{"kind": "observation", "days": 1}]}).status_code == 200
    assert admin.post("/v1/retention/run", json={"dry_run": False}).json()["erased"] == {"observation": 1}
    assert names(files) == []
    assert used_bytes(service, tenant) == 0


def test_the_erasure_of_a_tenant_takes_all_and_counts_it(
    service: Service, tenant: str, client: httpx2.Client, admin: httpx2.Client, stranger: httpx2.Client, files: Path
) -> None:
    for content in (HTML, b"never named"):
        kept(client, content)
    kept(stranger, HTML)
    stored(client, naming("page", HTML))
    stored(stranger, naming("page", HTML))
    lines = admin.request("DELETE", "/v1/tenant", json={"tenant": tenant}).text.splitlines()
    certificate = json.loads(lines[-1])["certificate"]
    assert certificate["nodes"]["Original"] == 2
    assert certificate["nodes"]["Attachment"] == 2
    assert certificate["scan"]["found"] == 0
    assert not files.exists()
    assert get(stranger, HTML).content == HTML


def test_what_no_unit_names_is_removed_after_a_day(service: Service, tenant: str, client: httpx2.Client, files: Path) -> None:
    named, orphan = b"named", b"never named"
    for content in (named, orphan):
        kept(client, content)
    stored(client, naming("page", named))
    now = datetime.now(UTC)
    assert service.run(sweeper(service).once(now + timedelta(hours=23))) is True
    assert names(files) == sorted([sha(named), sha(orphan)])
    assert service.run(sweeper(service).once(now + DAY)) is True
    assert names(files) == [sha(named)]
    stored(client, naming("late", orphan))
    unseen(client, orphan)
    assert used_bytes(service, tenant, "session", "session-1") == len(named) + len(b"What page shows.") + len(b"What late shows.")
    kept(client, orphan)
    assert get(client, orphan).content == orphan


def test_one_replica_at_a_time_sweeps(service: Service, client: httpx2.Client) -> None:
    kept(client, HTML)
    lease = f"test {uuid.uuid4().hex}"
    first, second = sweeper(service, lease), sweeper(service, lease)
    assert service.run(first.once()) is True
    assert service.run(second.once()) is False
    assert service.run(first.once()) is True


def test_damage_is_told_and_mended_by_storing_it_again(service: Service, tenant: str, client: httpx2.Client, files: Path) -> None:
    kept(client, HTML)
    stored(client, naming("page", HTML))
    path = next(path for path in files.rglob(sha(HTML)))
    path.write_bytes(HTML[:-1] + b"?")
    problem = refused(get(client, HTML), 500, "attachment_damaged")
    assert str(path) not in json.dumps(problem)
    path.unlink()
    refused(get(client, HTML), 500, "attachment_damaged")
    kept(client, HTML)
    assert get(client, HTML).content == HTML


class Stops(FolderObjects):
    """A store whose process dies at a moment: nothing after it is done."""

    def __init__(self, root: Path, moment: str) -> None:
        super().__init__(root)
        self._moment = moment

    def put(self, incoming: Any, key: str) -> None:
        if self._moment == "before":
            raise KeyboardInterrupt
        super().put(incoming, key)
        raise KeyboardInterrupt

    def remove(self, key: str) -> None:
        super().remove(key)
        if self._moment == "removing":
            raise KeyboardInterrupt


def beside(service: Service, root: Path, moment: str) -> Attachments:
    """The same graph with another way to the same bytes."""
    lastro = service.lastro
    return Attachments(
        AttachmentStore(lastro.database, lastro.quota_store), lambda: Stops(root, moment), most_bytes=10_000, orphan_s=86_400
    )


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_while_storing_loses_nothing_and_leaves_nothing(
    service: Service, tenant: str, client: httpx2.Client, files: Path, moment: str
) -> None:
    """Before and after the bytes are in place: nothing was acknowledged, nobody reads it, and the job removes it in time."""
    scope = service.lastro.registry.local(tenant, "agent-1", role=Role.AGENT)
    crashing = beside(service, files.parent, moment)

    async def crash() -> None:
        task = asyncio.create_task(_swallowed(crashing.put(scope, sha(HTML), "text/html", pieces(HTML))))
        await task

    service.run(crash())
    stored(client, naming("page", HTML))
    unseen(client, HTML)
    assert names(files) == ([] if moment == "before" else [sha(HTML)])
    assert service.run(sweeper(service).once(datetime.now(UTC) + DAY)) is True
    assert names(files) == []
    kept(client, HTML)
    assert get(client, HTML).content == HTML


async def _swallowed(work: Any) -> None:
    try:
        await work
    except KeyboardInterrupt:
        return
    raise AssertionError("it did not stop")


def test_a_crash_while_removing_is_made_good_by_the_job(service: Service, tenant: str, client: httpx2.Client, files: Path) -> None:
    kept(client, HTML)
    stored(client, naming("page", HTML))
    with pytest.MonkeyPatch.context() as patch:

        async def nothing(_: object) -> int:
            return 0

        patch.setattr(service.lastro.attachments, "remove_doomed", nothing)
        assert client.delete("/v1/units/page").status_code == 204
    unseen(client, HTML)
    refused(put(client, HTML), 503, "attachment_busy")
    scope = service.lastro.registry.local(tenant, "agent-1")
    service.run(_swallowed(beside(service, files.parent, "removing").remove_doomed(scope)))
    assert names(files) == [], "the bytes are gone, and the graph still says that they are to go"
    assert service.run(sweeper(service).once()) is True
    assert used_bytes(service, tenant) == 0
    kept(client, HTML)


def test_bytes_that_come_after_their_room_is_gone_are_removed(service: Service, tenant: str, client: httpx2.Client, files: Path) -> None:
    scope = service.lastro.registry.local(tenant, "agent-1", role=Role.AGENT)
    kept(client, b"so that there is a tenant")
    store = AttachmentStore(service.lastro.database, service.lastro.quota_store)
    objects = FolderObjects(files.parent)
    told = StoredAttachment(sha256=sha(HTML), bytes=len(HTML), media_type="text/html")

    async def late() -> None:
        original = await store.reserve(scope, told, keep_s=0)
        assert await sweeper(service).once(datetime.now(UTC) + timedelta(seconds=1)) is True
        with objects.incoming() as incoming:
            incoming.write(HTML)
            objects.put(incoming, original.object_key)

        async def remove(key: str) -> None:
            objects.remove(key)

        with pytest.raises(AttachmentBusy):
            await store.stored(scope, original, remove)
        with pytest.raises(NotFound):
            await store.find(scope, sha(HTML))

    service.run(late())
    assert sha(HTML) not in names(files)


def test_many_at_once_store_name_and_erase_the_same(service: Service, tenant: str, files: Path) -> None:
    """Whatever the order: at the end what is named is there, and nothing else."""
    key = service.key(tenant)

    def one(number: int) -> None:
        with service.client(key, session="s") as client:
            for turn in range(4):
                answer = put(client, HTML)
                assert answer.status_code in {201, 503}, answer.text
                assert answer.status_code == 201 or answer.json()["code"] in {"attachment_busy", "database_busy"}, answer.text
                name = f"page-{number}-{turn}"
                stored(client, naming(name, HTML))
                if number % 2:
                    assert client.delete(f"/v1/units/{name}").status_code == 204

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(4)))
    with service.client(key, session="s") as client:
        kept(client, HTML)
        assert get(client, HTML).content == HTML
        assert names(files) == [sha(HTML)]
        for number in (0, 2):
            for turn in range(4):
                assert client.delete(f"/v1/units/page-{number}-{turn}").status_code == 204
        unseen(client, HTML)
    assert names(files) == []
    assert used_bytes(service, tenant) == 0


def test_crossing_to_another_place_is_in_the_audit_trail(service: Service, tenant: str, admin: httpx2.Client) -> None:
    with service.client(service.key(tenant), session="s", organization="o", assessment="one") as writer:
        kept(writer, HTML)
        stored(writer, naming("page", HTML, kind="decision"))
    policy = {
        "kinds": ["decision"],
        "to": {"agents": ["reader"]},
        "scope": {"organization_id": "o", "assessment_id": "one"},
        "reason": "the follow-up",
    }
    assert admin.post("/v1/policies", json=policy).status_code == 201
    with service.client(service.key(tenant, "reader"), session="s", organization="o", assessment="two") as reader:
        assert get(reader, HTML).content == HTML
    assert next(event["action"] for event in admin.get("/v1/audit").json()["events"]) == "cross_assessment_read"


def test_the_client_and_the_commands_do_the_same(service: Service, tenant: str, client: httpx2.Client, tmp_path: Path) -> None:
    file, out = tmp_path / "page.html", tmp_path / "out.html"
    file.write_bytes(HTML)
    key = service.key(tenant)
    environment = {"LASTRO_URL": service.url, "LASTRO_KEY": key, "COLUMNS": "120"}
    done = CliRunner().invoke(app, ["attachments", "put", str(file), "--json"], env=environment)
    assert json.loads(done.stdout) == {"sha256": sha(HTML), "bytes": len(HTML), "media_type": "text/html"}
    stored(client, naming("page", HTML))
    asked = ["attachments", "get", sha(HTML), "--session", "session-1", "--out", str(out)]
    done = CliRunner().invoke(app, asked, env=environment)
    assert (done.exit_code, out.read_bytes()) == (0, HTML)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.html", "page.html"]

    async def with_client() -> bytes:
        async with LastroClient(service.url, key, session_id="session-1") as speaking:
            told = await speaking.put_attachment(sha(HTML), "text/html", pieces(HTML))
            assert told.bytes == len(HTML)
            return b"".join([piece async for piece in speaking.get_attachment(sha(HTML))])

    assert asyncio.run(with_client()) == HTML

    async def unknown() -> None:
        async with LastroClient(service.url, key) as speaking:
            async for _ in speaking.get_attachment("0" * 64):
                pass

    with pytest.raises(NotFound):
        asyncio.run(unknown())
