"""Transcripts and NDJSON as units: kinds, causation, steps, ids that stay the same, and errors that repeat nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from adapters.importers import transcript_files
from adapters.importers.formats import FORMATS, detect
from adapters.importers.transcript_files import Run, read_runs
from adapters.importers.transcript_units import convert, run_to_units
from adapters.importers.units_ndjson import read_units
from graph.model import errors
from graph.model.batch import check_batch
from graph.model.content import check_content
from graph.model.units import ContextUnit, EdgeType, Kind, digest


def _run(*messages: Any, **fields: Any) -> Run:
    return Run(key="t", task_id="t", session_id="s", messages=list(messages), line=1, **fields)


def _call(name: str, call_id: str | None = None, arguments: JsonValue = "{}") -> dict[str, JsonValue]:
    call: dict[str, JsonValue] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return call if call_id is None else {**call, "id": call_id}


def _user(content: JsonValue = "hello", **fields: JsonValue) -> dict[str, JsonValue]:
    return {"role": "user", "content": content, **fields}


def _assistant(content: JsonValue = None, *calls: dict[str, JsonValue], **fields: JsonValue) -> dict[str, JsonValue]:
    message: dict[str, JsonValue] = {"role": "assistant", "content": content, **fields}
    return {**message, "tool_calls": list(calls)} if calls else message


def _tool(content: JsonValue, call_id: str | None = None, name: str | None = None) -> dict[str, JsonValue]:
    message: dict[str, JsonValue] = {"role": "tool", "content": content}
    named: dict[str, JsonValue] = {key: value for key, value in (("tool_call_id", call_id), ("name", name)) if value is not None}
    return {**message, **named}


def _edges(unit: ContextUnit) -> list[tuple[str, str]]:
    return [(relation.edge_type.value, relation.target_id) for relation in unit.relations]


def _causes(unit: ContextUnit) -> list[str]:
    return [relation.target_id for relation in unit.relations if relation.edge_type is EdgeType.CAUSATION]


def _write(path: Path, *documents: JsonValue) -> Path:
    path.write_text("\n".join(json.dumps(document) for document in documents) + "\n", encoding="utf-8")
    return path


# --- a run as units -----------------------------------------------------------------------------------------------------------------


def test_a_run_becomes_units() -> None:
    units = run_to_units(
        _run(
            {"role": "system", "content": "Be careful."},
            _user("What is open?", name="ines"),
            _assistant("I look.", _call("list", "c1", '{"state": "open"}'), _call("count", "c2")),
            _tool('[{"id": 1, "title": "a"}, {"id": 2, "title": "b"}]', "c1", "list"),
            _tool("2", "c2", "count"),
            _assistant("Two are open."),
            _user("Thanks."),
        )
    )
    assert [(unit.id, unit.kind.value, unit.metadata.task_step) for unit in units] == [
        ("t:0000:system", "constraint", 0),
        ("t:0001:user", "observation", 1),
        ("t:0002:call", "decision", 1),
        ("t:0002:call-002", "decision", 1),
        ("t:0003:result", "tool_result", 1),
        ("t:0004:result", "tool_result", 1),
        ("t:0005:text", "progress_note", 2),
        ("t:0006:user", "observation", 3),
    ]
    assert [_causes(unit) for unit in units] == [
        [],
        [],
        ["t:0001:user"],
        ["t:0001:user"],
        ["t:0002:call"],
        ["t:0002:call-002"],
        ["t:0003:result", "t:0004:result"],
        ["t:0005:text"],
    ]
    call, second, result = units[2], units[3], units[4]
    assert call.content == "I look."
    assert second.content == "Calls count."
    assert call.metadata.tool is not None
    assert (call.metadata.tool.name, call.metadata.tool.call_id, call.metadata.tool.arguments) == ("list", "c1", {"state": "open"})
    assert result.content == "id|title\n-|-\n1|a\n2|b"
    assert result.metadata.tool is not None
    assert (result.metadata.tool.call_id, result.metadata.tool.arguments) == ("c1", None)
    assert [units[0].metadata.actor, units[1].metadata.actor, units[7].metadata.actor, call.metadata.actor] == [
        "system",
        "ines",
        "user",
        None,
    ]
    assert {unit.metadata.task_id for unit in units} == {"t"}
    assert {unit.metadata.session_id for unit in units} == {"s"}


def test_a_longer_run_begins_with_the_same_units() -> None:
    messages = [
        {"role": "developer", "content": "x"},
        _user(),
        _assistant(None, _call("a", "1"), _call("b", "2")),
        _tool("r", "2"),
        _tool("r", "1"),
        _assistant("done"),
        _user(),
        {"role": "system", "content": "new rule"},
        _assistant("ok"),
    ]
    whole = [digest(unit) for unit in run_to_units(_run(*messages))]
    for end in range(len(messages) + 1):
        part = [digest(unit) for unit in run_to_units(_run(*messages[:end]))]
        assert part == whole[: len(part)]


def test_ids_sort_as_the_messages_stand() -> None:
    ids = [transcript_files.unit_id("t", index, "user") for index in (0, 9, 10, 9_999, 10_000, 123_456)]
    assert ids == sorted(ids)


@pytest.mark.parametrize(
    ("messages", "causes"),
    [
        # the same id in two turns: the latest that waits
        (
            [_assistant(None, _call("a", "x")), _tool("1", "x"), _assistant(None, _call("a", "x")), _tool("2", "x")],
            ["0000:call", "0002:call"],
        ),
        # the same id twice in a turn: in order, or by name
        ([_assistant(None, _call("a", "x"), _call("a", "x")), _tool("1", "x"), _tool("2", "x")], ["0000:call", "0000:call-002"]),
        ([_assistant(None, _call("a", "x"), _call("b", "x")), _tool("1", "x", "b"), _tool("2", "x", "a")], ["0000:call-002", "0000:call"]),
        # no ids: in order, or by name
        ([_assistant(None, _call("a"), _call("b")), _tool("1"), _tool("2")], ["0000:call", "0000:call-002"]),
        ([_assistant(None, _call("a"), _call("b")), _tool("1", name="b"), _tool("2", name="a")], ["0000:call-002", "0000:call"]),
        # a call nobody answered stays alone
        ([_assistant(None, _call("a", "x")), _assistant(None, _call("a", "y")), _tool("1", "y")], ["0001:call"]),
        # a second result of one call
        ([_assistant(None, _call("a", "x")), _tool("1", "x"), _tool("2", "x")], ["0000:call", "0000:call"]),
        # the old form
        (
            [_assistant(None, function_call={"name": "f", "arguments": '{"a": 1}'}), {"role": "function", "name": "f", "content": "1"}],
            ["0000:call"],
        ),
    ],
)
def test_results_find_their_calls(messages: list[JsonValue], causes: list[str]) -> None:
    converted = convert(_run(*messages))
    results = [unit for unit in converted.units if unit.kind is Kind.TOOL_RESULT]
    assert [_causes(unit) for unit in results] == [[f"t:{cause}"] for cause in causes]
    assert not converted.notes


def test_a_result_without_a_call_is_caused_by_what_stood_before() -> None:
    converted = convert(_run(_user(), _tool("late", "unknown", "a")))
    assert _causes(converted.units[1]) == ["t:0000:user"]
    assert sum(converted.notes.values()) == 1
    assert _causes(run_to_units(_run(_tool("first of all")))[0]) == []


def test_at_most_sixteen_causes() -> None:
    calls = [_call("a", f"c{number}") for number in range(20)]
    units = run_to_units(_run(_assistant(None, *calls), *(_tool("r", f"c{number}") for number in range(20)), _assistant("done")))
    assert len(_causes(units[-1])) == 16


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ('{"a": 1.10, "b": [true, null]}', {"a": 1.1, "b": [True, None]}),
        ({"a": 1}, {"a": 1}),
        ("", {}),
        (None, {}),
        ("{broken", {"_raw": "{broken"}),
        ("[1]", {"_raw": "[1]"}),
        ('{"a": 1e400}', {"_raw": '{"a": 1e400}'}),
        ('{"a": NaN}', {"_raw": '{"a": NaN}'}),
        ('{"a": 99999999999999999999}', {"_raw": '{"a": 99999999999999999999}'}),
        ('{"a": 0.12345678901234567890123}', {"_raw": '{"a": 0.12345678901234567890123}'}),
        ('{"a": 1, "a": 2}', {"_raw": '{"a": 1, "a": 2}'}),
        ('{"a": "x\\u0000\\ud800"}', {"a": "x\u2400\ufffd"}),
        ("[" * 2_000, {"_raw": "[" * 2_000}),
    ],
)
def test_arguments_are_an_object_or_kept_as_they_were(arguments: JsonValue, kept: dict[str, JsonValue]) -> None:
    [unit] = run_to_units(_run(_assistant(None, _call("a", "1", arguments))))
    assert unit.metadata.tool is not None
    assert unit.metadata.tool.arguments == kept
    assert digest(ContextUnit.model_validate_json(unit.model_dump_json())) == digest(unit)


def test_huge_arguments_are_left_out_and_described() -> None:
    [unit] = run_to_units(_run(_assistant(None, _call("a", "1", json.dumps({"a": "x " * 200_000})))))
    assert unit.metadata.tool is not None
    assert unit.metadata.tool.arguments is not None
    assert str(unit.metadata.tool.arguments["_omitted"]).startswith("400009 bytes, sha256 ")


def test_parts_are_joined_and_files_described() -> None:
    image = b"\x89PNG not really"
    converted = convert(
        _run(
            _user(
                [
                    {"type": "text", "text": "Look:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(image).decode()}},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                    {"type": "input_audio", "input_audio": {"data": base64.b64encode(b"RIFF").decode(), "format": "wav"}},
                    {"type": "file", "file": {"file_id": "file-7"}},
                    {"type": "hologram", "x": 1},
                ]
            ),
            _assistant([{"type": "refusal", "refusal": "I cannot."}]),
            _assistant(None, refusal="I will not."),
            _tool([{"type": "text", "text": '{"a": 1, "b": 2}'}]),
            _tool({"a": [1, 2]}),
        )
    )
    first = converted.units[0]
    assert first.content.split("\n\n") == [
        "Look:",
        "(image, 15 bytes, image/png)",
        "(image at https://example.org/a.png)",
        "(audio, 4 bytes, audio/wav)",
        "(file file-7)",
        "(a part of type hologram was left out)",
    ]
    assert [(item.media_type, item.sha256) for item in first.attachments] == [
        ("image/png", hashlib.sha256(image).hexdigest()),
        ("audio/wav", hashlib.sha256(b"RIFF").hexdigest()),
    ]
    assert [source.uri for source in first.metadata.provenance] == [None, "https://example.org/a.png"]
    assert [unit.content for unit in converted.units[1:]] == ["I cannot.", "I will not.", "- a: 1\n- b: 2", "- a: [1; 2]"]


def test_texts_become_neutral_and_are_counted() -> None:
    converted = convert(
        _run(_user("<b>x</b>"), _user('{"a": 1}'), _user("a\x00b"), _user("  "), _assistant(None, _call("think", "1")), _tool("", "1"))
    )
    assert [unit.content for unit in converted.units] == ["```\n<b>x</b>\n```", "- a: 1", "a\u2400b", "Calls think.", "(empty)"]
    assert sum(converted.notes.values()) == 5
    assert all("x" not in note.split() for note in converted.notes)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"timestamp": "2026-03-04T08:06:07-03:00"}, "2026-03-04T08:06:07-03:00"),
        ({"created_at": "2026-03-04T08:06:07Z"}, "2026-03-04T08:06:07+00:00"),
        ({"created": 1754937502}, "2025-08-11T18:38:22+00:00"),
        ({"created": 1754937502000}, "2025-08-11T18:38:22+00:00"),
        ({"timestamp": "2026-03-04T08:06:07"}, None),
        ({"timestamp": "yesterday"}, None),
        ({"timestamp": 12}, None),
        ({"timestamp": True}, None),
        ({}, None),
    ],
)
def test_times_need_an_offset(fields: dict[str, JsonValue], expected: str | None) -> None:
    [unit] = run_to_units(_run(_user("x", **fields)))
    assert (unit.metadata.timestamp.isoformat() if unit.metadata.timestamp else None) == expected


def test_hints_name_earlier_messages() -> None:
    units = run_to_units(
        _run(
            _user("Never restart.", id="rule", kind="constraint"),
            _assistant("It is the cache.", id="guess", kind="decision", epistemic_status="inferred"),
            _assistant("It is the pool.", kind="correction", supersedes="guess", depends_on=["rule", "rule"]),
            _assistant("State: fine.", _call("a", "1"), kind="state_snapshot"),
        )
    )
    assert [unit.kind.value for unit in units] == ["constraint", "decision", "correction", "state_snapshot", "decision"]
    assert units[1].metadata.epistemic_status.value == "inferred"
    assert _edges(units[2]) == [("causation", "t:0001:text"), ("supersession", "t:0001:text"), ("dependency", "t:0000:user")]
    assert _edges(units[4]) == [("causation", "t:0003:text")]


@pytest.mark.parametrize(
    "message",
    [
        "secret",
        {"role": "secret", "content": "secret"},
        {"content": "secret"},
        _user("secret", kind="secret"),
        _user("secret", epistemic_status=3),
        _user("secret", depends_on="later"),
        _user("secret", depends_on=["later"]),
        _user("secret", supersedes={"secret": 1}),
        {"role": "assistant", "tool_calls": "secret"},
        {"role": "assistant", "tool_calls": ["secret"]},
    ],
)
def test_wrong_messages_are_named_and_not_repeated(message: JsonValue) -> None:
    with pytest.raises(errors.ImportRefused) as refused:
        run_to_units(_run(_user(), message))
    assert "secret" not in refused.value.message
    assert "1 of run t" in refused.value.message
    assert refused.value.where is not None
    assert refused.value.where.field == "messages.1"


def test_odd_names_and_ids_are_made_to_fit() -> None:
    run = Run(
        key="t",
        task_id="t",
        session_id="s",
        messages=[_assistant(None, _call("a" * 900, "with space")), _tool("x", "with space", "a" * 900)],
        line=1,
    )
    units = run_to_units(run, task_id="my task " + "x" * 300, session_id="a\nb")
    assert all(len(unit.id) <= 128 for unit in units)
    assert _causes(units[1]) == [units[0].id]
    tool = units[0].metadata.tool
    assert tool is not None
    assert tool.call_id is not None
    assert tool.call_id.startswith("sha256:")
    assert transcript_files.clean_id("a b") != transcript_files.clean_id("a_b")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PARTS = {"text": JSON_VALUES, "image_url": JSON_VALUES, "file": JSON_VALUES, "type": st.sampled_from(["text", "image_url", "file"])}
FUNCTIONS = {"name": JSON_VALUES, "arguments": JSON_VALUES}
CALL_IDS = st.sampled_from(["1", "2"]) | JSON_VALUES


def _some(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def _message(role: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, **fields}


def _asked(function: dict[str, Any], call_id: Any) -> dict[str, Any]:
    return {"function": function, "id": call_id}


MESSAGES = st.builds(
    _message,
    st.sampled_from(["system", "developer", "user", "assistant", "tool", "function"]),
    _some(
        {
            **dict.fromkeys(["name", "refusal", "audio", "timestamp", "created"], JSON_VALUES),
            "content": JSON_VALUES | st.lists(_some(PARTS), max_size=3),
            "tool_call_id": CALL_IDS,
            "tool_calls": st.lists(st.builds(_asked, _some(FUNCTIONS), CALL_IDS), max_size=3),
        }
    ),
)


@settings(max_examples=200)
@given(st.lists(MESSAGES, max_size=8))
def test_any_messages_become_valid_units(messages: list[dict[str, JsonValue]]) -> None:
    units = run_to_units(_run(*messages))
    check_batch(units)
    ids: set[str] = set()
    for unit in units:
        check_content(unit.content)
        assert all(relation.target_id in ids for relation in unit.relations)
        ids.add(unit.id)
        assert digest(ContextUnit.model_validate_json(unit.model_dump_json())) == digest(unit)
    assert [unit.id for unit in units] == sorted(ids)


# --- files --------------------------------------------------------------------------------------------------------------------------


def _read(path: Path, task_id: str | None = None) -> list[tuple[str, str, int]]:
    return [(run.key, run.task_id, len(run.messages)) for run in read_runs(path, task_id)]


def test_documents_of_every_shape_are_read(tmp_path: Path) -> None:
    exchange: JsonValue = {
        "request": {"messages": [_user()], "model": "gpt-4.1"},
        "response": {"created": 1754937502, "choices": [{"message": _assistant("hi")}]},
    }
    path = tmp_path / "run.json"
    for document, expected in (
        ([_user(), _assistant("a")], [("run-1", "run-1", 2)]),
        ({"messages": [_user()], "id": "m 1"}, [("m_1~" + hashlib.sha256(b"m 1").hexdigest()[:12],) * 2 + (1,)]),
        ({"traj": [_user()], "task_id": 3, "trial": 0}, [("3-0", "3-0", 1)]),
        ({"trajectory": [_user()], "task_id": "x"}, [("x", "x", 1)]),
        (exchange, [("run-1", "run-1", 2)]),
        ([{"messages": [_user()]}, [_user(), _user()]], [("run-1", "run-1", 1), ("run-2", "run-2", 2)]),
    ):
        for indent in (None, 2):
            path.write_text("\ufeff" + json.dumps(document, indent=indent), encoding="utf-8")
            assert _read(path) == expected
    _write(path, exchange)
    [run] = read_runs(path)
    assert run.model == "gpt-4.1"
    assert run_to_units(run)[1].metadata.timestamp is not None


def test_json_lines_are_read_one_by_one_and_keys_are_unique(tmp_path: Path) -> None:
    lines: list[JsonValue] = [
        {"task_id": 1, "messages": [_user()]},
        {"task_id": 1, "messages": [_user()]},
        {"task_id": 1, "trial": 1, "messages": [_user()]},
    ]
    path = _write(tmp_path / "runs.jsonl", *lines)
    path.write_text(path.read_text(encoding="utf-8").replace("\n", "\n\n"), encoding="utf-8")
    assert [(run.key, run.line) for run in read_runs(path)] == [("1", 1), ("1~2", 3), ("1-1", 5)]
    assert [key for key, _, _ in _read(path, "T")] == ["T-1", "T-2", "T-3"]
    assert [key for key, _, _ in _read(_write(path, lines[0]), "T")] == ["T"]


def test_runs_of_one_task_go_on_from_each_other(tmp_path: Path) -> None:
    path = _write(
        tmp_path / "task.json",
        {
            "task_id": "inc",
            "runs": [
                {"agent": "one", "model": "gpt-4.1", "messages": [_user(), _assistant("wrong", id="guess")]},
                {"agent": "two", "session_id": "s2", "messages": [_user(), _assistant("right", supersedes="guess", kind="correction")]},
                {"agent": "two", "messages": [_user()]},
            ],
        },
    )
    for task in (None, "other"):
        first, second, third = read_runs(path, task)
        name = task or "inc"
        assert [run.key for run in (first, second, third)] == [f"{name}:one", f"{name}:two", f"{name}:two~2"]
        assert {run.task_id for run in (first, second, third)} == {name}
        assert (first.agent_id, first.model, second.session_id) == ("one", "gpt-4.1", "s2")
        assert run_to_units(first)[0].metadata.agent_id == "one"
        correction = run_to_units(second)[1]
        assert correction.metadata.task_step == 2
        assert ("supersession", run_to_units(first)[1].id) in _edges(correction)
        assert third.first_step == 2


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", None),
        (b"\n \n", None),
        (b"not json", 1),
        (b"3", 1),
        (b"[]", None),
        (b'[1, "secret"]', 1),
        (b'{"a": "secret"}', 1),
        (b'{"messages": "secret"}', 1),
        (b'{"messages": []}\n{"messages": secret}\n', 2),
        (b'{"messages": []}\n\xff\xfe\n', 2),
        (b'{"messages": [], "messages": []}', 1),
        (b"[" * 100_000, 1),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, line: int | None) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(errors.ImportRefused) as refused:
        list(read_runs(path))
    assert "secret" not in refused.value.message
    assert (refused.value.where.index if refused.value.where else None) == line


def test_files_over_the_limits_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps([_user("x" * 300)], indent=1), encoding="utf-8")
    monkeypatch.setattr(transcript_files, "MAX_DOCUMENT_BYTES", 200)
    with pytest.raises(errors.ImportRefused, match="over 200 MB"):
        list(read_runs(path))


def test_the_shipped_demo_run_tells_its_story() -> None:
    with as_file(files("app.demo") / "incident.json") as path:
        assert detect(path) == "openai-chat"
        runs = list(read_runs(path))
    units = [unit for run in runs for unit in run_to_units(run)]
    check_batch(units)
    by_id = {unit.id: unit for unit in units}
    assert [run.agent_id for run in runs] == ["triage", "database-specialist"]
    assert {unit.metadata.task_id for unit in units} == {"incident-4711"}
    assert all(unit.metadata.timestamp is not None for unit in units)
    [correction] = [unit for unit in units if unit.kind is Kind.CORRECTION]
    [wrong] = [by_id[target] for kind, target in _edges(correction) if kind == "supersession"]
    assert wrong.metadata.agent_id == "triage"
    [rollback] = [unit for unit in units if unit.content.startswith("Decision: set orders.pool_max")]
    assert rollback.metadata.task_step == 16
    assert {by_id[target].kind for kind, target in _edges(rollback) if kind in {"dependency", "provenance"}} == {
        Kind.CORRECTION,
        Kind.CONSTRAINT,
        Kind.TOOL_RESULT,
    }
    for unit in units:
        check_content(unit.content)
        if unit.kind is Kind.TOOL_RESULT:
            assert [by_id[cause].kind for cause in _causes(unit)] == [Kind.DECISION]


# --- units --------------------------------------------------------------------------------------------------------------------------


def test_units_are_read_with_the_place_to_go_on_from(tmp_path: Path) -> None:
    path = tmp_path / "units.ndjson"
    lines = [json.dumps({"id": f"u{number}", "kind": "observation", "content": "é"}, ensure_ascii=False) for number in range(3)]
    path.write_bytes(b"\xef\xbb\xbf" + (lines[0] + "\n\n" + lines[1] + "\r\n" + lines[2]).encode())
    read = list(read_units(path))
    assert [(line, unit.id) for _, line, unit in read] == [(1, "u0"), (3, "u1"), (4, "u2")]
    assert read[-1][0] == path.stat().st_size
    assert list(read_units(path, read[0][0])) == read[1:]
    assert list(read_units(path, read[-1][0])) == []


def test_wrong_units_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "units.ndjson"
    good = '{"id": "u", "kind": "observation", "content": "x"}\n'
    for bad, expected in (
        ("secret", errors.InvalidJson),
        ('{"id": "u", "kind": "secret", "content": "x"}', errors.UnknownKind),
        ('{"id": "u", "kind": "observation", "content": "\\ud800"}', errors.LoneSurrogate),
        ('{"id": "a b", "kind": "observation", "content": "x"}', errors.InvalidId),
        ('{"content": "' + "x" * 4_200_000 + '"}', errors.ImportRefused),
    ):
        path.write_text(good + "\n" + bad + "\n", encoding="utf-8")
        units = read_units(path)
        assert next(units)[2].id == "u"
        with pytest.raises(expected) as refused:
            next(units)
        assert refused.value.where is not None
        assert refused.value.where.index == 3
        assert "secret" not in refused.value.message
    for offset in (3, 10_000_000):
        with pytest.raises(errors.ImportRefused):
            next(read_units(path, offset))


# --- formats ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"id": "u", "kind": "observation", "content": "x"}', "units"),
        ('{"id": "u", "metadata": {}}\n', "units"),
        ('\ufeff\n{"task_id": 1, "traj": []}', "openai-chat"),
        ('{\n "messages": [\n', "openai-chat"),
        ('[{"role": "user", "content": "x", "metadata": {}}]', "openai-chat"),
        ('[\n {"messages": []}]', "openai-chat"),
        ('{"request": {"messages": []}, "response": {}}', "openai-chat"),
        ('{"runs": []}', "openai-chat"),
        ('{"id": "u",\n "kind": "observation"}', "units"),
        ('{"id": "u", "content": "' + "x" * 2_000_000, None),
        ('{"a": 1}', None),
        ("a,b\n1,2", None),
        ("", None),
        ("[1, 2]", None),
    ],
)
def test_the_format_is_seen_from_the_first_object(tmp_path: Path, content: str, expected: str | None) -> None:
    path = tmp_path / "file"
    path.write_text(content, encoding="utf-8")
    if expected is not None:
        assert detect(path) == expected
        assert expected in FORMATS
        return
    with pytest.raises(errors.ImportRefused) as refused:
        detect(path)
    assert all(name in refused.value.hint for name in FORMATS)
