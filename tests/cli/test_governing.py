"""`lastro quotas`, `usage` and `audit`, through a service and on the store itself: the same commands, the same answers (T3, T4)."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from api.wire import stored
from cli.command_line import lastro
from conftest import Service, unit
from rich.cells import cell_len

from graph.model.scope import Role


def told(done: subprocess.CompletedProcess[str], code: int = 0) -> Any:
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def fits(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if cell_len(line) > 80] == []
    return done.stdout


@pytest.fixture
def remote(service: Service, tenant: str) -> dict[str, str]:
    """The environment of an admin of the test's tenant."""
    return {"LASTRO_URL": service.url, "LASTRO_KEY": service.key(tenant, "boss", Role.ADMIN)}


def test_quotas_are_set_listed_and_removed_through_a_service(service: Service, tenant: str, remote: dict[str, str]) -> None:
    made = told(lastro("quotas", "set", "agent", "agent-1", "--units", "3", "--requests", "90", "--window", "1h", "--json", **remote))
    assert (made["limits"]["units"], made["limits"]["window_s"], made["remaining"]["units"]) == (3, 3_600, 3)
    told(lastro("quotas", "set", "tenant", tenant, "--bytes", "1000", "--reason", "a trial", "--json", **remote))
    with service.client(service.key(tenant), session="s") as client:
        stored(client, unit("a"), unit("b"))
    found = told(lastro("quotas", "list", "--json", **remote))["quotas"]
    assert {(item["subject_type"], item["used"]["units"]) for item in found} == {("agent", 2), ("tenant", None)}
    shown = fits(lastro("quotas", "list", **remote))
    assert "agent-1" in shown
    assert "each 3600 s" in shown
    worker = remote | {"LASTRO_KEY": service.key(tenant)}
    assert [item["subject_id"] for item in told(lastro("usage", "--own", "--json", **worker))["quotas"]] == ["agent-1", tenant]
    assert told(lastro("quotas", "list", "--json", **worker), 1)["error"]["code"] == "forbidden"
    assert told(lastro("quotas", "remove", "agent", "agent-1", "--json", **remote))["removed"] is True
    assert told(lastro("quotas", "remove", "agent", "agent-1", "--json", **remote), 1)["error"]["code"] == "not_found"


def test_a_refusal_says_the_same_as_over_http(service: Service, tenant: str, remote: dict[str, str], tmp_path: Path) -> None:
    told(lastro("quotas", "set", "agent", "agent-1", "--units", "1", "--json", **remote))
    path = tmp_path / "units.ndjson"
    path.write_text("".join(json.dumps(unit(name)) + "\n" for name in ("a", "b")))
    worker = remote | {"LASTRO_KEY": service.key(tenant), "LASTRO_DATA": str(tmp_path)}
    error = told(lastro("import", str(path), "--format", "units", "--json", **worker), 1)["error"]
    assert error["code"] == "quota_exceeded"
    assert "1 allowed, 0 used, 1 remaining, 2 asked for" in error["title"]


def test_usage_as_table_json_and_csv(service: Service, tenant: str, remote: dict[str, str]) -> None:
    with service.client(service.key(tenant), session="s") as client:
        stored(client, unit("a"), unit("b"))
    rows = told(lastro("usage", "--json", **remote))["rows"]
    assert {(row["subject_type"], row["subject_id"], row["units"]) for row in rows} == {
        ("tenant", tenant, 2),
        ("agent", "agent-1", 2),
        ("session", "s", 2),
    }
    assert "agent-1" in fits(lastro("usage", "--type", "agent", "--by", "day", "--since", "1d", **remote))
    (only,) = told(lastro("usage", "--type", "session", "--id", "s", "--json", **remote))["rows"]
    assert only in rows
    read = list(csv.DictReader(io.StringIO(lastro("usage", "--csv", **remote).stdout)))
    assert [(row["subject_id"], row["units"]) for row in read] == [(row["subject_id"], str(row["units"])) for row in rows]
    assert told(lastro("usage", "--csv", "--json", **remote), 2)["error"]["code"] == "command_refused"
    for wrong in (("usage", "--since"), ("ledger", "--from")):
        error = told(lastro(*wrong, "yesterday", "--json", **remote), 2)["error"]
        assert (error["code"], error["where"]["field"]) == ("invalid_field", wrong[1])
        assert "RFC 3339" in error["hint"]
        assert "7d" in error["hint"]


def test_the_trail_as_table_json_and_file(tenant: str, remote: dict[str, str], tmp_path: Path) -> None:
    for number in range(3):
        told(lastro("quotas", "set", "session", f"s{number}", "--units", "1", "--reason", "line\u2028sep", "--json", **remote))
    shown = fits(lastro("audit", "--action", "quota_changed", **remote))
    assert shown.count("quota_changed") == 3
    page = told(lastro("audit", "--action", "quota_changed", "--limit", "2", "--json", **remote))
    assert [event["target"] for event in page["events"]] == ["session s2", "session s1"]
    rest = told(lastro("audit", "--action", "quota_changed", "--cursor", page["next"], "--json", **remote))
    assert [event["target"] for event in rest["events"]] == ["session s0"]
    path = tmp_path / "trail.ndjson"
    done = told(lastro("audit", "--export", str(path), "--json", **remote))
    events = [json.loads(line) for line in path.read_text().split("\n")[:-1]]
    assert done["events"] == len(events) >= 3
    assert [event for event in events if event["action"] == "quota_changed"] == page["events"] + rest["events"]
    refused = lastro("audit", "--export", str(tmp_path / "no" / "such" / "folder"), "--json", **remote)
    assert told(refused, 2)["error"]["code"] == "command_refused"
    assert [item.name for item in tmp_path.iterdir()] == ["trail.ndjson"]


@pytest.mark.parametrize("command", [["quotas", "list"], ["quotas", "set", "agent", "a", "--units", "1"], ["usage"], ["audit"]])
def test_another_tenant_than_the_keys_own_is_refused(tenant: str, remote: dict[str, str], command: list[str]) -> None:
    error = told(lastro(*command, "--tenant", "another", "--json", **remote), 2)["error"]
    assert error["code"] == "command_refused"
    assert told(lastro(*command, "--tenant", tenant, "--json", **remote))


def test_the_same_on_the_store_itself(tmp_path: Path) -> None:
    place = {"LASTRO_DATA": str(tmp_path / "data")}
    assert told(lastro("usage", "--json", **place), 2)["error"]["code"] == "command_refused"
    for tenant in ("acme", "other"):
        told(lastro("keys", "create", "--tenant", tenant, "--agent", "reader", "--json", **place))
    told(lastro("quotas", "set", "session", "s", "--units", "2", "--tenant", "acme", "--reason", "a trial", "--json", **place))
    path = tmp_path / "units.ndjson"
    path.write_text("".join(json.dumps(unit(name, session_id="s")) + "\n" for name in ("a", "b")))
    assert told(lastro("import", str(path), "--tenant", "acme", "--agent", "reader", "--json", **place))["written"] == 2
    path.write_text(json.dumps(unit("c", session_id="s")) + "\n")
    assert told(lastro("import", str(path), "--tenant", "acme", "--json", **place), 1)["error"]["code"] == "quota_exceeded"
    rows = {row["subject_id"]: row for row in told(lastro("usage", "--tenant", "acme", "--json", **place))["rows"]}
    assert {name: (row["units"], row["writes"]) for name, row in rows.items()} == {"acme": (2, 1), "reader": (2, 1), "s": (2, 0)}
    assert told(lastro("usage", "--tenant", "other", "--json", **place))["rows"] == []
    event, made = told(lastro("audit", "--tenant", "acme", "--json", **place))["events"]
    assert made["action"] == "key_created"
    assert (event["action"], event["reason"], event["key_id"], event["target"]) == ("quota_changed", "a trial", "local", "session s")
