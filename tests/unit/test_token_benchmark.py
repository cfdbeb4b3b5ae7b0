"""What the benchmark of token counts computes, on small recordings made for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.tokenizers import Tokenizers
from benchmarks import token_counts
from benchmarks.measuring import Figure

FOX = "The quick brown fox jumps over the lazy dog."


def line(request: dict[str, Any], response: dict[str, Any], address: str = "/v1/chat/completions") -> str:
    return json.dumps({"id": "made-up", "uri_path": address, "request": request, "response": response}) + "\n"


def silent(what: str, done: int, total: int) -> None: ...


def chat(text: str = FOX) -> dict[str, Any]:
    return {"model": "gpt-5.2", "messages": [{"role": "user", "content": text}]}


def test_each_answered_request_is_compared_once(tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    said = line(chat(), {"usage": {"prompt_tokens": 20}})
    file.write_text(said + said + line(chat("other"), {"error": {}}))
    (pair,) = token_counts.pairs(file, Tokenizers())
    assert (pair.model, pair.vendor, pair.counted.tokens.value, pair.error, pair.within) == ("gpt-5.2", 20, 16, 20.0, False)


@pytest.mark.parametrize(
    ("response", "tokens"),
    [
        ({"usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 1}}, 13),
        ({"usageMetadata": {"promptTokenCount": 9}}, 9),
        ({"input_tokens": 4}, 4),
        ({"error": "no"}, 0),
    ],
)
def test_what_the_vendor_charged_is_read_from_each_form(response: dict[str, Any], tokens: int) -> None:
    assert token_counts.charged(response) == tokens


def test_results_of_tools_are_found_in_each_form(tmp_path: Path) -> None:
    rows = '[{"lamp": "a", "lux": 1}, {"lamp": "b", "lux": 2}, {"lamp": "c", "lux": 3}]'
    folder = tmp_path / "exchanges"
    folder.mkdir()
    for names in token_counts.FILES.values():
        for name in names:
            (folder / name).write_text("")
    (folder / "openai_chat.jsonl").write_text(line({"messages": [{"role": "tool", "content": rows}]}, {}))
    (folder / "openai_responses.jsonl").write_text(line({"input": [{"type": "function_call_output", "output": "two"}]}, {}))
    block = {"type": "tool_result", "content": [{"type": "text", "text": "three"}]}
    (folder / "anthropic_messages.jsonl").write_text(line({"messages": [{"role": "user", "content": [block]}]}, {}))
    part = {"function_response": {"name": "a", "response": {"four": 4}}}
    (folder / "gemini.jsonl").write_text(line({"contents": [{"parts": [part]}]}, {}))
    assert set(token_counts.exchange_results(folder)) == {rows, "two", "three", '{"four": 4}'}

    (tmp_path / "tau_airline").mkdir()
    (tmp_path / token_counts.RUNS).write_text(
        json.dumps({"traj": [{"role": "tool", "content": rows}, {"role": "user", "content": "x"}]}) + "\n"
    )
    assert list(token_counts.tau_results(tmp_path / token_counts.RUNS)) == [rows]
    figures: list[Figure] = []

    async def work() -> None:
        figures.extend(await token_counts.measure(tmp_path, silent))

    anyio.run(work)
    saved = {figure.name: figure for figure in figures if figure.engine == "tau_airline"}
    assert saved["results that are JSON, all read back"].value == 1
    assert saved["fewer as neutral markdown, GPT"].value > 25
    assert saved["fewer as neutral markdown, GPT"].met is True
