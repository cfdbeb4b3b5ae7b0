"""The command line as people and scripts use it: by subprocess, on the embedded engine, most of it through one service (O3).

Each start of an engine costs seconds, so the commands of this file share a folder and its service, and stand in the order of a session.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cli.command_line import lastro
from conftest import edge, unit
from rich.cells import cell_len

from app.bootstrap import Lastro
from app.settings import Settings
from graph.model.errors import EngineFolderInUse

LASTRO = Path(sys.executable).with_name("lastro")
INCIDENT = Path(__file__).parents[2] / "app" / "demo" / "incident.json"
LONG_ID = "a-unit-with-a-very-long-name-" + "x" * 99
START_S = 60


@dataclass
class Shell:
    """Runs lastro as a person in one folder would, with a terminal of 80 columns."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])

    def __call__(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [LASTRO, *arguments], env=self.told(environment), cwd=self.folder, capture_output=True, text=True, timeout=120, check=False
        )

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [LASTRO, *arguments],
            env=self.told(environment),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def told(self, more: dict[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LASTRO_")}
        return kept | {"COLUMNS": "80", "LASTRO_DATA": str(self.folder / "data")} | self.environment | more


def told_in_json(done: subprocess.CompletedProcess[str], code: int = 0) -> Any:
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def fits(done: subprocess.CompletedProcess[str]) -> str:
    """What a person reads, no line of it wider than the terminal."""
    assert done.returncode == 0, done.stderr
    wide = [line for line in done.stdout.splitlines() if cell_len(line) > 80]
    assert wide == []
    assert done.stdout.strip()
    return done.stdout


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def first_key(local: Shell) -> dict[str, Any]:
    """The first key of a store, made before any service runs."""
    return told_in_json(local("keys", "create", "--tenant", "acme", "--agent", "boss", "--role", "admin", "--json"))


@pytest.fixture(scope="module")
def serving(local: Shell, first_key: dict[str, Any]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`lastro serve` on a free port, and the address that it says it listens on."""
    process = local.start("serve", "--port", "0")
    assert process.stderr is not None
    line = ""
    ends = time.monotonic() + START_S
    while "listens on" not in line and time.monotonic() < ends and process.poll() is None:
        line = process.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert found, f"no address in {line!r}"
    yield process, found[0]
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)


@pytest.fixture(scope="module")
def remote(local: Shell, first_key: dict[str, Any], serving: tuple[subprocess.Popen[str], str]) -> Shell:
    """A shell with LASTRO_URL and LASTRO_KEY set."""
    return Shell(local.folder, {"LASTRO_URL": serving[1], "LASTRO_KEY": first_key["key"]})


@pytest.fixture(scope="module")
def units_file(local: Shell) -> Path:
    """Units in a file, one of them before its target."""
    units = [
        unit("after", "Then it was rolled back. " * 12, "decision", task_id="t", task_step=2, relations=[edge("before")]),
        unit("before", "The checkout was slow: 数据库 👩🏽‍🚒 " * 6, task_id="t", task_step=1),
        unit(LONG_ID, "# A title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", task_id="t", task_step=3, relations=[edge("after", "dependency")]),
    ]
    path = local.folder / "units.ndjson"
    path.write_text("".join(json.dumps(item) + "\n" for item in units))
    return path


def test_the_first_key_is_shown_once(first_key: dict[str, Any]) -> None:
    assert re.fullmatch(r"lastro_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", first_key["key"])
    assert (first_key["tenant_id"], first_key["agent_id"], first_key["role"]) == ("acme", "boss", "admin")
    assert (first_key["state"], first_key["expires_at"]) == ("active", None)
    assert first_key["id"] in first_key["key"]


def test_units_are_imported_once(remote: Shell, units_file: Path) -> None:
    first = told_in_json(remote("import", str(units_file), "--json"))
    assert (first["format"], first["written"], first["unchanged"]) == ("units", 3, 0)
    assert "0 written, 3 unchanged" in fits(remote("import", str(units_file)))


def test_a_transcript_is_imported_once(remote: Shell) -> None:
    first = told_in_json(remote("import", str(INCIDENT), "--json"))
    assert first["format"] == "openai-chat"
    assert first["written"] > 20
    second = told_in_json(remote("import", str(INCIDENT), "--json"))
    assert (second["written"], second["unchanged"], second["task_ids"]) == (0, first["written"], first["task_ids"])


def test_a_transcript_of_another_vendor_shows_its_form(remote: Shell) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "level", "input": {"dam": 1}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "4.5", "is_error": False}
    messages = [{"role": "user", "content": "Dam?"}, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    exchange = {"id": "dam", "request": {"messages": messages}, "response": {"type": "error", "error": {"type": "overloaded_error"}}}
    path = remote.folder / "exchange.jsonl"
    path.write_text(json.dumps(exchange) + "\n")
    first = told_in_json(remote("import", str(path), "--json"))
    assert (first["format"], first["formats"], first["written"]) == ("anthropic", {"anthropic": 1}, 4)
    assert first["notes"] == {"a request that failed has no answer": 1}
    assert "0 written, 4 unchanged" in fits(remote("import", str(path), "--format", "anthropic"))
    shown = told_in_json(remote("units", "show", "dam:0002:result", "--json"))
    assert shown["relations"] == [{"target_id": "dam:0001:call", "edge_type": "causation"}]
    for named in ("gemini", "carrier-pigeon"):
        error = told_in_json(remote("import", str(path), "--format", named, "--json"), 2)["error"]
        assert error["code"] == "import_refused"
        assert "Dam?" not in json.dumps(error)


def test_units_are_listed_shown_and_walked(remote: Shell) -> None:
    page = told_in_json(remote("units", "list", "--task", "t", "--limit", "2", "--json"))
    assert len(page["units"]) == 2
    rest = told_in_json(remote("units", "list", "--task", "t", "--limit", "2", "--cursor", page["next"], "--json"))
    assert {item["id"] for item in page["units"] + rest["units"]} == {"after", "before", LONG_ID}
    shown = told_in_json(remote("units", "show", "after", "--json"))
    assert (shown["kind"], shown["owner"]["agent_id"]) == ("decision", "boss")
    walked = told_in_json(remote("units", "lineage", "after", "--json"))
    assert {item["id"] for item in walked["units"]} == {"after", "before", LONG_ID}


def test_what_people_read_fits_the_terminal(remote: Shell) -> None:
    listed = remote("units", "list", "--task", "t")
    assert re.search(r"before +observation +1 +boss +The checkout", fits(listed)), "a long id or content pushes no column out"
    assert "--json has all of it" in listed.stderr
    assert "a-unit-with-a-very-long-name" in fits(remote("units", "show", LONG_ID))
    walked = fits(remote("units", "lineage", "after"))
    assert re.search(r"after +causation +before", walked)
    assert re.search(r"a-unit-with-a-very-long-na.* +dependency +after", walked)
    assert "boss" in fits(remote("keys", "list"))
    fits(remote("context", "--task", "t", "--budget", "600", "--model", "gpt-5.2", "--deadline-ms", "5000"))


def test_a_context_is_answered_in_json_and_as_a_payload(remote: Shell) -> None:
    asked = ("context", "--task", "t", "--step", "2", "--budget", "600", "--model", "claude-opus-4-8", "--deadline-ms", "5000")
    answer = told_in_json(remote(*asked, "--json"))
    assert {item["id"] for item in answer["units"]} == {"after", "before"}
    assert answer["receipt"]["query_type"] == "step"
    assert answer["consumption"]["tokens"]["value"] <= 600
    assert told_in_json(remote(*asked, "--payload")) == answer["rendered"]["payload"]


ERRORS: dict[str, tuple[list[str], dict[str, str], int, str]] = {
    "no such unit": (["units", "show", "nowhere"], {}, 1, "not_found"),
    "no budget": (["context", "--task", "t", "--budget", "0"], {}, 2, "invalid_budget"),
    "unknown model": (["context", "--task", "t", "--model", "nobody-1"], {}, 2, "unknown_model"),
    "naive time": (["context", "--task", "t", "--as-of", "2026-03-04T08:06:07"], {}, 2, "naive_timestamp"),
    "wrong key": (["units", "list"], {"LASTRO_KEY": "wrong"}, 1, "unauthenticated"),
    "no key": (["units", "list"], {"LASTRO_KEY": ""}, 2, "command_refused"),
    "nobody listens": (["units", "list"], {"LASTRO_URL": "http://127.0.0.1:9"}, 3, "unavailable"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_one_json_document_and_an_exit_code(remote: Shell, case: str) -> None:
    arguments, environment, status, code = ERRORS[case]
    done = remote(*arguments, "--json", **environment)
    told = told_in_json(done, status)["error"]
    assert told["code"] == code
    assert told["hint"]
    assert "Traceback" not in done.stderr


def test_an_error_for_people_says_what_to_do(remote: Shell) -> None:
    done = remote("units", "show", "nowhere")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "not_found" in done.stderr
    assert "Check the id" in done.stderr


def test_a_broken_line_of_a_file_is_named(remote: Shell) -> None:
    path = remote.folder / "broken.ndjson"
    path.write_text(json.dumps(unit("fine")) + "\n" + json.dumps(unit("bad", kind="rumour")) + "\n")
    told = told_in_json(remote("import", str(path), "--format", "units", "--json"), 2)["error"]
    assert told["code"] == "unknown_kind"
    assert told["where"] == {"index": 2, "field": "kind"}


def test_a_second_owner_of_the_folder_is_refused_with_a_hint(remote: Shell, local: Shell) -> None:
    done = local("units", "list", "--json")
    told = told_in_json(done, 3)["error"]
    assert told["code"] == "engine_folder_in_use"
    assert "LASTRO_URL" in told["hint"]
    other = local("serve", "--port", "0")
    assert other.returncode == 3
    assert "engine_folder_in_use" in other.stderr
    assert "LASTRO_URL" in " ".join(other.stderr.split())
    assert "Traceback" not in other.stderr
    assert remote("units", "list", "--json").returncode == 0, "the owner goes on"


def test_the_doctor_tells_all_that_needs_no_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With LASTRO_URL set it does not say to set it, and a fault of a profiles file is not one of the database."""
    opened: list[Settings] = []

    @asynccontextmanager
    async def in_use(settings: Settings, *, warm_up: bool) -> AsyncGenerator[Lastro]:
        assert not warm_up
        opened.append(settings)
        raise EngineFolderInUse
        yield

    monkeypatch.setattr("app.cli.doctor.running", in_use)
    (tmp_path / "ours.toml").write_text("extends = 'no-such-family'\n[[profiles]]\n")
    place = {"LASTRO_URL": "http://127.0.0.1:9/", "LASTRO_KEY": "k", "LASTRO_DATA": str(tmp_path / "data")}
    for environment in (place, {**place, "LASTRO_PROFILES": str(tmp_path)}):
        checks = {row["check"]: row for row in told_in_json(lastro("doctor", "--json", **environment), 1)["checks"]}
        assert checks["database"]["state"] == "bad"
        assert "stop the service" in checks["database"]["found"]
        assert "http://127.0.0.1:9/readyz" in checks["database"]["found"]
        assert "set LASTRO_URL" not in checks["database"]["found"]
        assert any(name.startswith("model gpt/") for name in checks)
        assert ("profiles" in checks) is ("LASTRO_PROFILES" in environment)
    assert (checks["profiles"]["state"], "ours.toml" in checks["profiles"]["found"]) == ("bad", True)
    assert len(opened) == 2, "the store is looked at all the same"


def test_keys_are_managed_through_the_service(remote: Shell) -> None:
    made = told_in_json(remote("keys", "create", "--agent", "worker", "--expires", "30d", "--json"))
    assert (made["tenant_id"], made["role"], made["state"]) == ("acme", "agent", "active")
    worker = {"LASTRO_KEY": made["key"]}
    assert told_in_json(remote("keys", "list", "--json", **worker), 1)["error"]["code"] == "forbidden"
    listed = remote("keys", "list", "--json")
    assert made["key"] not in listed.stdout
    after = told_in_json(remote("keys", "rotate", made["id"], "--overlap", "2h", "--json"))
    assert (after["agent_id"], after["role"], after["state"]) == ("worker", "agent", "active")
    for key in (made["key"], after["key"]):
        assert remote("units", "list", "--json", LASTRO_KEY=key).returncode == 0
    assert told_in_json(remote("keys", "rotate", made["id"], "--json"), 1)["error"]["code"] == "key_not_rotatable"
    assert told_in_json(remote("keys", "rotate", after["id"], "--overlap", "soon", "--json"), 2)["error"]["code"] == "command_refused"
    last = remote("keys", "rotate", after["id"], "--overlap", "0")
    assert re.fullmatch(r"lastro_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", last.stdout.strip())
    assert f"Key {after['id']} is revoked." in last.stderr
    assert told_in_json(remote("units", "list", "--json", LASTRO_KEY=after["key"]), 1)["error"]["code"] == "unauthenticated"
    assert told_in_json(remote("keys", "revoke", made["id"], "--json")) == {"id": made["id"], "revoked": True}
    assert told_in_json(remote("units", "list", "--json", **worker), 1)["error"]["code"] == "unauthenticated"
    assert {key["id"]: key["state"] for key in told_in_json(remote("keys", "list", "--json"))["keys"]}[made["id"]] == "revoked"


def test_an_import_that_was_killed_goes_on_where_it_was(remote: Shell) -> None:
    path = remote.folder / "many.ndjson"
    with path.open("w") as file:
        for n in range(6_000):
            file.write(json.dumps(unit(f"many-{n}", f"Reading {n} of the meter.", task_id="many", task_step=n)) + "\n")
    checkpoints = remote.folder / "data" / "imports"
    process = remote.start("import", str(path), "--json")
    ends = time.monotonic() + START_S
    while not list(checkpoints.glob("*.json")) and time.monotonic() < ends and process.poll() is None:
        time.sleep(0.01)
    assert process.poll() is None, "it was over before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    assert list(checkpoints.glob("*.json"))
    again = told_in_json(remote("import", str(path), "--json"))
    assert again["resumed_at"] > 0
    assert 0 < again["written"] < 6_000
    assert again["written"] + again["unchanged"] < 6_000
    assert not list(checkpoints.glob("*.json")), "what is complete needs no checkpoint"
    whole = told_in_json(remote("import", str(path), "--json"))
    assert (whole["written"], whole["unchanged"], whole["resumed_at"]) == (0, 6_000, 0)


def test_ctrl_c_ends_the_service_and_its_engine(serving: tuple[subprocess.Popen[str], str], remote: Shell, local: Shell) -> None:
    process, _ = serving
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, said = process.communicate(timeout=40)
    assert process.returncode in {0, 130}, said
    assert time.monotonic() - began < 30
    assert "Traceback" not in said
    assert told_in_json(remote("units", "list", "--json"), 3)["error"]["code"] == "unavailable"
    # The folder is free again, and everything is still in it.
    page = told_in_json(local("units", "list", "--task", "t", "--tenant", "acme", "--json"))
    assert {item["id"] for item in page["units"]} == {"after", "before", LONG_ID}
