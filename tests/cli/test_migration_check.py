"""`lastro migrate-check`: one context for two models, beside each other (A8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from api.wire import call, result, stored
from cli.command_line import lastro
from conftest import Service, unit
from rich.cells import cell_len

from adapters.tool_definitions.forms import WRITERS, read_tools
from graph.model.errors import InvalidField

TOOLS: list[dict[str, Any]] = [
    {
        "name": "ferry.times",
        "description": "When ferries leave.",
        "parameters": {
            "type": "object",
            "properties": {"from": {"$ref": "#/$defs/port"}, "day": {"oneOf": [{"type": "string"}, {"type": "null"}]}},
            "$defs": {"port": {"type": "string", "enum": ["Aveiro", "Faro"]}},
        },
    }
]


@pytest.fixture
def remote(service: Service, tenant: str, other_tenant: str) -> dict[str, str]:
    for name, text in ((tenant, "Ferries stop at noon."), (other_tenant, "A secret of another tenant.")):
        with service.client(service.key(name), session="s") as client:
            stored(
                client,
                unit("rule", text, "constraint", task_id="t"),
                call("c", 1, task_id="t"),
                result("r", "c", 1, "Two ferries a day.", task_id="t"),
                *(unit(f"u{number}", f"Passengers of day {number} waited {number * 7} minutes.", task_id="t") for number in range(9)),
            )
    return {"LASTRO_URL": service.url, "LASTRO_KEY": service.key(tenant)}


def test_both_models_are_told_the_same_and_each_has_its_costs(remote: dict[str, str], tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    asked = ("migrate-check", "gpt-5.2", "gemini-2.5-pro", "--task", "t", "--budget", "4000", "--tools", str(tools))
    done = lastro(*asked, "--json", **remote)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    before, after = told["before"], told["after"]
    assert (before["api"], after["api"]) == ("openai.chat.completions", "google.generate_content")
    assert set(before["order"]) == set(after["order"]) == {"rule", "c", "r", *(f"u{number}" for number in range(9))}
    assert (told["only_before"], told["only_after"]) == ([], [])
    assert told["tokens_ratio"] == round(after["tokens"]["value"] / before["tokens"]["value"], 3)
    assert told["moved"] == sum(one != other for one, other in zip(before["order"], after["order"], strict=True))
    for side in (before, after):
        assert side["tokens"]["low"] <= side["tokens"]["value"] <= side["tokens"]["high"]
        assert side["tools"]["tokens"] > 0
    assert {"name_changed"} <= {note["code"] for note in before["tools"]["notes"]}
    assert "secret" not in done.stdout

    shown = lastro(*asked, **remote)
    assert shown.returncode == 0, shown.stderr
    assert "u8" in shown.stdout
    assert "times the tokens" in shown.stdout
    assert [line for line in shown.stdout.splitlines() if cell_len(line) > 80] == []
    assert before["tools"]["names"] == dict.fromkeys(before["tools"]["names"], "ferry.times")
    (name,) = before["tools"]["names"]
    assert f"  The tool ferry.times is called {name}." in shown.stdout


def test_where_nothing_is_stored_no_empty_table_is_shown(remote: dict[str, str], tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    asked = ("migrate-check", "gpt-5.2", "claude-opus-4-8", "--task", "nosuch")
    done = lastro(*asked, **remote)
    assert done.returncode == 0
    assert "Nothing is stored there for this caller" in done.stderr
    assert "times the tokens" not in done.stdout
    assert "place" not in done.stdout
    assert "is called" in lastro(*asked, "--tools", str(tools), **remote).stdout, "tools can be compared all the same"


def test_without_anything_to_ask_about_it_says_what_is_needed() -> None:
    done = lastro("migrate-check", "gpt-5.2", "gpt-4o", "--json", LASTRO_URL="http://127.0.0.1:9", LASTRO_KEY="k")
    error = json.loads(done.stdout)["error"]
    assert (done.returncode, error["title"]) == (2, "One of --task, --unit, --session and --topic is needed.")


def test_a_context_is_asked_from_a_session(remote: dict[str, str]) -> None:
    asked = ("context", "--task", "t", "--model", "gpt-5.2", "--tool-pairs", "native", "--deadline-ms", "20000", "--payload")
    roles = [
        {message["role"] for message in json.loads(lastro(*asked, *more, **remote).stdout)["messages"]}
        for more in ((), ("--from-session", "s"))
    ]
    assert ["tool" in told for told in roles] == [False, True]


def test_a_smaller_budget_says_which_are_no_longer_told(remote: dict[str, str]) -> None:
    told = json.loads(lastro("migrate-check", "gpt-5.2", "claude-opus-4-8", "--task", "t", "--budget", "420", "--json", **remote).stdout)
    first, second = set(told["before"]["order"]), set(told["after"]["order"])
    assert first - second == set(told["only_before"])
    assert second - first == set(told["only_after"])
    assert told["only_before"], "Claude's tokens are smaller, so fewer units fit"


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not JSON"), ('{"a": 1}', "JSON list"), ('[{"x": 1}]', "in no form"), ('["x"]', "in no form")]
)
def test_a_file_of_tools_that_is_none_is_refused(text: str, message: str, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(text)
    done = lastro("migrate-check", "gpt-5.2", "gpt-4o", "--task", "t", "--tools", str(tools), "--json", LASTRO_URL="http://127.0.0.1:9")
    assert done.returncode != 0
    assert message in json.loads(done.stdout)["error"]["title"]


@pytest.mark.parametrize("api", WRITERS)
def test_tools_are_read_from_the_form_of_any_vendor(api: str) -> None:
    (plain,) = read_tools([{**TOOLS[0], "name": "ferry_times"}]).tools
    written = WRITERS[api]([plain]).tools
    (again,) = read_tools(written).tools
    assert (again.name, again.description) == (plain.name, plain.description)
    assert set(again.parameters["properties"]) == {"from", "day"}
    if api == "google.generate_content":
        assert read_tools([{"functionDeclarations": written}]).tools == [again]


def test_what_is_no_definition_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidField) as refused:
        read_tools([TOOLS[0], {"title": "x"}])
    assert refused.value.where is not None
    assert refused.value.where.field == "/1"
