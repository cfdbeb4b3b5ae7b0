"""A8, U6: each vendor's transcripts as units, in every shape that a file may have them: requests, answers, exchanges and streams."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from adapters.importers.formats import FORMATS, detect
from adapters.importers.transcript_files import Run, read_runs, unique_key
from adapters.importers.transcript_units import NOTE_FAILED, Conversion, convert
from adapters.transcripts.fields import NOTE_OPAQUE
from adapters.transcripts.forms import FORMS
from adapters.transcripts.model import FAILED
from graph.model import errors
from graph.model.batch import check_batch
from graph.model.content import check_content
from graph.model.units import ContextUnit, EdgeType, digest

IMAGE = b"\x89PNG made up"
BASE64 = base64.b64encode(IMAGE).decode()

ASKED: dict[str, Any] = {
    "openai-chat": {
        "model": "gpt-5.2",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "How is the dam?"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "level", "arguments": '{"dam": 1}'}},
                    {"id": "c2", "type": "function", "function": {"name": "rain", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c2", "content": f"{FAILED}no gauge"},
            {"role": "tool", "tool_call_id": "c1", "content": '{"level": 4.5}'},
        ],
    },
    "openai-responses": {
        "model": "gpt-5.2",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "How is the dam?"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
            {"type": "function_call", "call_id": "c1", "name": "level", "arguments": '{"dam": 1}'},
            {"type": "function_call", "call_id": "c2", "name": "rain", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c2", "output": f"{FAILED}no gauge"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": '{"level": 4.5}'}]},
        ],
    },
    "anthropic": {
        "model": "claude-opus-4-8",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "How is the dam?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "redacted_thinking", "data": "EvMC"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c1", "name": "level", "input": {"dam": 1}},
                    {"type": "tool_use", "id": "c2", "name": "rain", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c2", "content": "no gauge", "is_error": True},
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": '{"level": 4.5}'}]},
                ],
            },
        ],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "How is the dam?"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "I look."},
                    {"functionCall": {"id": "c1", "name": "level", "args": {"dam": 1}}, "thoughtSignature": "EvMC"},
                    {"function_call": {"id": "c2", "name": "rain", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"function_response": {"id": "c2", "name": "rain", "response": {"error": "no gauge"}}},
                    {"functionResponse": {"id": "c1", "name": "level", "response": {"level": 4.5}}},
                ],
            },
        ],
    },
}
ASKED["deepseek"] = {**ASKED["openai-chat"], "model": "deepseek-chat"}

ANSWERED: dict[str, Any] = {
    "openai-chat": {"id": "1", "choices": [{"message": {"role": "assistant", "content": "It is full."}}], "created": 1_754_937_502},
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_754_937_502,
        "output": [
            {"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "4.5 of 4.5."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is full."}]},
        ],
    },
    "anthropic": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "4.5 of 4.5.", "signature": "EvMC"}, {"type": "text", "text": "It is full."}],
    },
    "gemini": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "4.5 of 4.5.", "thought": True}, {"text": "It is full."}]}}]
    },
    "deepseek": {"choices": [{"message": {"role": "assistant", "content": "It is full.", "reasoning_content": "4.5 of 4.5."}}]},
}
NAMES = sorted(ASKED)


def _written(path: Path, *documents: JsonValue) -> Path:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    return path


def _causes(unit: ContextUnit) -> list[str]:
    return [relation.target_id for relation in unit.relations if relation.edge_type is EdgeType.CAUSATION]


def _one(path: Path) -> tuple[Run, Conversion]:
    [run] = read_runs(path)
    return run, convert(run)


def test_every_format_that_is_named_is_tried_here() -> None:
    assert set(FORMATS) == {"units", *NAMES} == {"units", *FORMS}


@pytest.mark.parametrize("name", NAMES)
def test_an_exchange_of_each_vendor_becomes_the_same_units(name: str, tmp_path: Path) -> None:
    path = _written(tmp_path / "x.jsonl", {"id": "dam", "request": ASKED[name], "response": ANSWERED[name]})
    assert detect(path) == name
    run, converted = _one(path)
    assert (run.form, run.key) == (name, "dam")
    assert run.model == (None if name == "gemini" else ASKED[name]["model"])
    check_batch(converted.units)
    reasoning = name != "openai-chat"
    assert [(unit.kind.value, unit.content, unit.metadata.task_step) for unit in converted.units] == [
        ("constraint", "Be brief.", 0),
        ("observation", "How is the dam?", 1),
        ("decision", "I look.", 1),
        ("decision", "Calls rain.", 1),
        ("tool_result", f"{FAILED}no gauge", 1),
        ("tool_result", "- level: 4.5", 1),
        *([("progress_note", "4.5 of 4.5.", 2)] if reasoning else []),
        ("progress_note", "It is full.", 2),
    ]
    user, level, rain, no_gauge, full = converted.units[1:6]
    assert [_causes(unit) for unit in (level, rain, no_gauge, full)] == [[user.id], [user.id], [rain.id], [level.id]]
    assert level.metadata.tool is not None
    assert (level.metadata.tool.name, level.metadata.tool.call_id, level.metadata.tool.arguments) == ("level", "c1", {"dam": 1})
    last = converted.units[-1]
    assert _causes(last) == [no_gauge.id, full.id, *([converted.units[-2].id] if reasoning else [])]
    if reasoning:
        thought = converted.units[-2]
        assert thought.id.endswith(":analysis")
        assert thought.metadata.provenance[0].method == "reasoning"
    assert {unit.metadata.provenance[0].source for unit in converted.units} == {name}
    assert converted.notes[NOTE_OPAQUE] == {"openai-responses": 1, "anthropic": 2, "gemini": 1}.get(name, 0)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_in_any_shape_is_the_same(name: str, tmp_path: Path) -> None:
    """A request alone, an exchange without an answer, and the bare messages: same content, same edges; only the key is another."""

    def shown(document: JsonValue, indent: int | None = None) -> list[tuple[str, list[str]]]:
        path = tmp_path / "run.json"
        path.write_text(json.dumps(document, indent=indent), encoding="utf-8")
        assert detect(path) in ({name, "openai-chat"} if name == "deepseek" else {name})
        return [(unit.content, [cause.partition(":")[2] for cause in _causes(unit)]) for unit in _one(path)[1].units]

    request = ASKED[name]
    whole = shown({"request": request})
    assert len(whole) == 6
    assert shown(request) == shown(request, indent=2) == whole
    assert shown({"custom_id": "a", "method": "POST", "url": "/v1/x", "body": request}) == whole
    if name in {"openai-chat", "deepseek"}:
        assert shown(request["messages"]) == whole
    messages = next(request[field] for field in ("messages", "input", "contents") if field in request)
    assert [content for content, _ in shown(messages)][-5:] == [content for content, _ in whole][-5:]
    assert [content for content, _ in shown(ANSWERED[name])][-1:] == ["It is full."]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_imported_twice_is_the_same_and_a_longer_one_begins_with_it(name: str, tmp_path: Path) -> None:
    shorter = _one(_written(tmp_path / "a.jsonl", {"id": "k", "request": ASKED[name]}))[1].units
    longer = _one(_written(tmp_path / "b.jsonl", {"id": "k", "request": ASKED[name], "response": ANSWERED[name]}))[1].units
    again = _one(_written(tmp_path / "c.jsonl", {"id": "k", "request": ASKED[name], "response": ANSWERED[name]}))[1].units
    assert list(map(digest, longer)) == list(map(digest, again))
    assert list(map(digest, longer))[: len(shorter)] == list(map(digest, shorter))


@pytest.mark.parametrize("name", NAMES)
def test_a_named_format_is_taken_and_another_refused(name: str, tmp_path: Path) -> None:
    path = _written(tmp_path / "x.jsonl", {"request": ASKED[name]})
    assert [run.form for run in read_runs(path, form=name)] == [name]
    other = "gemini" if name != "gemini" else "anthropic"
    with pytest.raises(errors.ImportRefused):
        [unit for run in read_runs(path, form=other) for unit in convert(run).units]


def test_records_of_several_vendors_in_one_file_show_each_their_own(tmp_path: Path) -> None:
    path = _written(tmp_path / "x.jsonl", *({"request": ASKED[name]} for name in NAMES))
    assert [run.form for run in read_runs(path)] == NAMES


STREAMS: dict[str, list[JsonValue]] = {
    "openai-chat": [
        {"id": "1", "object": "chat.completion.chunk", "choices": [{"delta": {"role": "assistant", "content": "It is "}}]},
        {"id": "1", "object": "chat.completion.chunk", "choices": [{"delta": {"content": "full."}}]},
        {"id": "1", "object": "chat.completion.chunk", "choices": [
            {"delta": {"tool_calls": [{"index": 0, "id": "c9", "function": {"name": "open", "arguments": ""}}]}}]},
        {"id": "1", "object": "chat.completion.chunk", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": '{"gate"'}}]}}]},
        {"id": "1", "object": "chat.completion.chunk", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ": 2}"}}]}}]},
    ],
    "openai-responses": [
        {"type": "response.created", "response": {"id": "resp_1", "output": []}},
        {"type": "response.output_text.delta", "delta": "It is full."},
        {"type": "response.output_item.done", "output_index": 0, "item": {
            "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is full."}]}},
        {"type": "response.output_item.done", "output_index": 1, "item": {
            "type": "function_call", "call_id": "c9", "name": "open", "arguments": '{"gate": 2}'}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "full."}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c9", "name": "open", "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"gate"'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ": 2}"}},
        {"type": "message_stop"},
    ],
    "gemini": [
        {"responseId": "r", "candidates": [{"content": {"role": "model", "parts": [{"text": "It is "}]}}]},
        {"responseId": "r", "candidates": [{"content": {"role": "model", "parts": [{"text": "full."}]}}]},
        {"responseId": "r", "candidates": [{"content": {"parts": [{"functionCall": {"id": "c9", "name": "open", "args": {"gate": 2}}}]}}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(STREAMS))
@pytest.mark.parametrize("shape", ["list", "text", "lines", "events", "array"])
def test_a_stream_is_the_answer_that_it_makes_up(name: str, shape: str, tmp_path: Path) -> None:
    events = STREAMS[name]
    sent = "".join(f"event: x\ndata: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    path = tmp_path / "run.jsonl"
    match shape:
        case "list":
            _written(path, {"request": ASKED[name], "response": events})
        case "text":
            _written(path, {"request": ASKED[name], "response": sent})
        case "lines":
            _written(path, *events)
        case "events":
            path.write_text(sent, encoding="utf-8")
        case _:
            path.write_text(json.dumps(events, indent=1), encoding="utf-8")
    if shape != "array":
        assert detect(path) == name
    run, converted = _one(path)
    assert run.form == name
    unit = converted.units[-1]
    assert unit.content == "It is full."
    assert unit.metadata.tool is not None
    assert (unit.metadata.tool.call_id, unit.metadata.tool.arguments) == ("c9", {"gate": 2})
    assert len(converted.units) == (7 if shape in {"list", "text"} else 1)


def test_streams_that_follow_each_other_are_an_answer_each(tmp_path: Path) -> None:
    for name, events in STREAMS.items():
        second = json.loads(json.dumps(events).replace('"id": "1"', '"id": "2"').replace('"responseId": "r"', '"responseId": "s"'))
        assert len(list(read_runs(_written(tmp_path / f"{name}.jsonl", *events, *second)))) == 2


@pytest.mark.parametrize(
    ("name", "response", "said"),
    [
        ("openai-chat", {"error": {"type": "invalid_request_error", "message": "No such model."}}, "invalid_request_error: No such model."),
        ("openai-responses", {"error": {"code": "unsupported_file", "message": "A pdf."}}, "unsupported_file: A pdf."),
        ("anthropic", {"type": "error", "error": {"type": "not_found_error", "message": "m"}}, "not_found_error: m"),
        ("gemini", {"error": {"code": 404, "status": "NOT_FOUND", "message": "m"}}, "NOT_FOUND: m"),
        ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}, "SAFETY"),
        ("deepseek", "upstream went away", "status 502."),
    ],
)
def test_a_request_that_failed_imports_what_is_there(name: str, response: JsonValue, said: str, tmp_path: Path) -> None:
    run, converted = _one(_written(tmp_path / "x.jsonl", {"request": ASKED[name], "response": response, "status": 502}))
    assert run.form == name
    assert len(converted.units) == 7
    last = converted.units[-1]
    assert last.kind.value == "observation"
    assert last.content.endswith(said)
    assert _causes(last) == [unit.id for unit in converted.units[4:6]]
    assert converted.notes[NOTE_FAILED] == 1


FILES: dict[str, list[JsonValue]] = {
    "openai-chat": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}"}}]}],
    "openai-responses": [{"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{BASE64}"}, {"type": "input_text", "text": "."}]}],
    "anthropic": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}}]}],
    "gemini": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": BASE64.replace("+", "-").replace("/", "_")}}]}],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FILES))
def test_an_image_is_an_attachment_and_its_bytes_stand_beside(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(FILES[name]), encoding="utf-8")
    run, converted = _one(path)
    assert run.form == name
    [unit], [original] = converted.units, converted.originals
    assert unit.content.startswith(f"(image, {len(IMAGE)} bytes, image/png)")
    assert [(item.uri, item.media_type, item.sha256) for item in unit.attachments] == [
        (f"urn:sha256:{hashlib.sha256(IMAGE).hexdigest()}", "image/png", hashlib.sha256(IMAGE).hexdigest())
    ]
    assert (original.unit_id, original.data, original.attachment) == (unit.id, IMAGE, unit.attachments[0])


def test_a_document_of_text_is_read_and_kept(tmp_path: Path) -> None:
    block = {"type": "document", "title": "rules.txt", "source": {"type": "text", "media_type": "text/plain", "data": "Gate 2 stays shut."}}
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"role": "user", "content": [block]}]), encoding="utf-8")
    [unit] = _one(path)[1].units
    assert unit.content == "(file, 18 bytes, text/plain)\n\nGate 2 stays shut."
    assert len(unit.attachments) == 1


def test_a_text_that_cannot_be_kept_whole_has_its_original(tmp_path: Path) -> None:
    text = "word " * 100_000
    run, converted = _one(_written(tmp_path / "x.jsonl", {"messages": [{"role": "user", "content": text}]}))
    [unit], [original] = converted.units, converted.originals
    assert original.data.decode() == text
    assert (original.unit_id, unit.attachments) == (unit.id, [original.attachment])
    assert run.form == "openai-chat"


def test_what_the_vendor_ran_itself_is_a_call_with_its_result(tmp_path: Path) -> None:
    anthropic: JsonValue = [
        {"role": "user", "content": "Sum it."},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I count."},
                {"type": "server_tool_use", "id": "s1", "name": "bash_code_execution", "input": {"command": "wc"}},
                {"type": "bash_code_execution_tool_result", "tool_use_id": "s1", "content": {
                    "type": "bash_code_execution_result", "stdout": "4", "return_code": 0}},
                {"type": "server_tool_use", "id": "s2", "name": "web_search", "input": {"query": "q"}},
                {"type": "web_search_tool_result", "tool_use_id": "s2", "content": [
                    {"type": "web_search_result", "title": "T", "url": "https://pages.example", "encrypted_content": "EqQJ"}]},
                {"type": "text", "text": "It is 4."},
            ],
        },
    ]  # fmt: skip
    responses: JsonValue = [
        {"role": "user", "content": "Sum it."},
        {"type": "code_interpreter_call", "id": "s1", "code": "2+2", "outputs": [{"type": "logs", "logs": "4"}]},
        {"type": "mcp_call", "id": "s2", "name": "search", "server_label": "x", "arguments": "{}", "output": "found"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 4."}]},
    ]
    gemini: JsonValue = [
        {"role": "user", "parts": [{"text": "Sum it."}]},
        {
            "role": "model",
            "parts": [
                {"executableCode": {"language": "PYTHON", "code": "2+2"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}},
                {"text": "It is 4."},
            ],
        },
    ]
    for document, pairs in ((anthropic, 2), (responses, 2), (gemini, 1)):
        path = tmp_path / "x.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        units = _one(path)[1].units
        by_id = {unit.id: unit for unit in units}
        results = [unit for unit in units if unit.kind.value == "tool_result"]
        assert len(results) == pairs
        for unit in results:
            [cause] = _causes(unit)
            assert by_id[cause].kind.value == "decision"
        assert units[-1].content == "It is 4."
        assert "EqQJ" not in "".join(unit.content for unit in units)
        assert len(by_id) == len(units)


def test_an_answer_that_goes_on_from_an_earlier_one_answers_its_calls(tmp_path: Path) -> None:
    call: dict[str, Any] = {"type": "function_call", "call_id": "c1", "name": "level", "arguments": "{}"}
    output: dict[str, Any] = {"type": "function_call_output", "call_id": "c1", "output": "4.5"}
    first: dict[str, Any] = {
        "request": {"input": "Dam?", "model": "m"},
        "response": {"id": "resp_1", "object": "response", "output": [call]},
    }
    second: dict[str, Any] = {
        "request": {"input": [{"role": "user", "content": "And?"}], "previous_response_id": "resp_1"},
        "response": {"id": "resp_2", "object": "response", "output": []},
    }
    third: dict[str, Any] = {"request": {"input": [output], "previous_response_id": "resp_2"}, "response": None}
    other: dict[str, Any] = {"request": {"input": [output], "previous_response_id": "resp_9"}, "response": None}
    units = [convert(run).units for run in read_runs(_written(tmp_path / "x.jsonl", first, second, third, other))]
    [result], [alone] = units[2], units[3]
    assert _causes(result) == [units[0][-1].id]
    assert result.metadata.tool is not None
    assert result.metadata.tool.name == "level"
    assert _causes(alone) == []


def _chain(number: int, said: JsonValue, output: list[JsonValue]) -> JsonValue:
    request: JsonValue = {"input": said, "previous_response_id": f"r{number - 1}"}
    return {"request": request, "response": {"id": f"r{number}", "object": "response", "output": output}}


def _called(name: str, call_id: str | None) -> dict[str, JsonValue]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}"}


def test_a_result_answers_the_nearest_call_of_its_chain(tmp_path: Path) -> None:
    output: dict[str, JsonValue] = {"type": "function_call_output", "output": "4.5"}
    path = _written(
        tmp_path / "x.jsonl",
        _chain(0, "Dam?", [_called("level", "same"), _called("rain", "far")]),
        _chain(1, "And?", [_called("level", "same"), _called("wind", "near")]),
        _chain(2, "And?", []),
        _chain(3, [{**output, "call_id": "far"}, {**output, "call_id": "same"}, output, {**output, "call_id": "lost"}], []),
    )
    units = [convert(run).units for run in read_runs(path)]
    asked = {unit.id: f"{run} {unit.metadata.tool.call_id}" for run, made in enumerate(units) for unit in made if unit.metadata.tool}
    assert [asked[_causes(unit)[0]] for unit in units[3][:3]] == ["0 far", "1 same", "1 near"]


def test_a_chain_of_answers_holds_each_call_once(tmp_path: Path) -> None:
    """Counted, since time is no measure on a busy machine: each run has the calls that it answers, however long the chain is."""
    output: dict[str, JsonValue] = {"type": "function_call_output", "output": "4.5"}
    lines = [
        _chain(number, [{**output, "call_id": f"c{number - 1}"}] if number else "Dam?", [_called("level", f"c{number}")])
        for number in range(300)
    ]
    runs = list(read_runs(_written(tmp_path / "x.jsonl", *lines)))
    assert [len(run.earlier) for run in runs] == [0] + [1] * 299
    unanswered = [_chain(number, "Go on.", [_called("level", f"c{number}")]) for number in range(300)]
    assert not any(run.earlier for run in read_runs(_written(tmp_path / "y.jsonl", *unanswered)))


def test_runs_of_a_task_share_one_index_and_see_only_what_is_before(tmp_path: Path) -> None:
    runs: list[JsonValue] = [
        {"messages": [{"id": "first", "role": "user", "content": "Hi"}, {"id": f"m{number}", "role": "user", "content": "Hi"}]}
        for number in range(4)
    ]
    found = list(read_runs(_written(tmp_path / "x.json", {"task_id": "t", "runs": runs})))
    assert [sorted(run.known) for run in found] == [[], ["first", "m0"], ["first", "m0", "m1"], ["first", "m0", "m1", "m2"]]
    assert [run.known.get("first") for run in found] == [None, "t:1:0000:user", "t:2:0000:user", "t:3:0000:user"]
    assert len({id(vars(run.known)["_index"]) for run in found}) == 1


def test_lines_that_repeat_an_id_are_numbered_in_one_step_each() -> None:
    class Counted(dict[str, int]):
        looked = 0

        def __contains__(self, key: object) -> bool:
            self.looked += 1
            return super().__contains__(key)

    seen = Counted()
    names = [unique_key(key, seen) for key in ["x~3", *["x"] * 500, "x~3"]]
    assert names[:5] == ["x~3", "x", "x~2", "x~4", "x~5"]
    assert names[-1] == "x~3~2"
    assert len(set(names)) == len(names)
    assert seen.looked < 3 * len(names)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["\ud800", "\u3164", "a b", "x" * 700]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["type", "role", "content", "parts", "text", "id", "name", "input", "call_id", "tool_use_id", "source", "output", "functionCall",
        "functionResponse", "inlineData", "response", "arguments", "args", "data", "mimeType", "media_type", "url", "error", "thinking"]  # fmt: skip
WORDS = ["user", "assistant", "model", "system", "tool", "tool_use", "tool_result", "image", "document", "text", "base64", "function_call",
         "function_call_output", "reasoning", "message", "web_search_tool_result", "mcp_call", "image_generation_call", "input_file"]  # fmt: skip
ODD = st.recursive(
    ANY_JSON | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=12,
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=80, deadline=None)
@given(messages=st.lists(st.dictionaries(st.sampled_from(KEYS), ODD | st.sampled_from(WORDS), max_size=6), max_size=4))
def test_any_messages_become_valid_units_or_are_refused(name: str, messages: list[JsonValue]) -> None:
    run = Run(key="t", task_id="t", session_id="s", messages=messages, line=1, form=name)
    try:
        converted = convert(run)
    except errors.ImportRefused:
        return
    check_batch(converted.units)
    assert len({unit.id for unit in converted.units}) == len(converted.units)
    for unit in converted.units:
        check_content(unit.content)
        assert digest(ContextUnit.model_validate_json(unit.model_dump_json())) == digest(unit)


@pytest.mark.parametrize(
    "arguments", ['{"a": 1e-99999999999999999999}', '{"a": "' + "\n" * 200_000 + '"}', '"' + '\\"' * 130_000 + '"', "[" * 900, '{"a": 1e9' + ", " * 9]
)  # fmt: skip
@pytest.mark.parametrize("call_id", ["\u3164", "\ud800", "x" * 2**20, "a\nb"])
def test_hostile_ids_and_arguments_are_made_to_fit(arguments: str, call_id: str) -> None:
    call: dict[str, Any] = {"id": call_id, "function": {"name": "\x00" * 600, "arguments": arguments}}
    messages: list[JsonValue] = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": call_id, "content": "r"}]
    units = convert(Run(key="t", task_id="t", session_id="s", messages=messages, line=1)).units
    assert _causes(units[1]) == [units[0].id]
