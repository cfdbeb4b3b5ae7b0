"""`lastro tokens`: counts with parts and bounds, and the vendor's own counter asked over HTTP, here one on this machine."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from adapters.vendor_counters import COUNTERS, vendor_tokens
from app import token_checks
from app.cli.main import app
from graph.model.errors import BodyTooLarge, CommandRefused, InvalidJson, LoneSurrogate, Unavailable, UnknownModel

KEY = "sk-very-secret-key"
CHAT: dict[str, Any] = {"model": "gpt-5.2", "messages": [{"role": "user", "content": "hello world"}]}
TOOL: dict[str, Any] = {"name": "read_lamp", "input_schema": {"type": "object", "properties": {}}}
CLAUDE: dict[str, Any] = {
    "model": "claude-opus-4-8",
    "max_tokens": 5,
    "messages": [{"role": "user", "content": "hello world"}],
    "tools": [TOOL],
}
GEMINI: dict[str, Any] = {"contents": [{"parts": [{"text": "hello world"}]}]}
RESPONSES: dict[str, Any] = {"model": "gpt-5.2", "input": "hello world", "stream": True}


@dataclass
class Vendor:
    """Answers every POST with what it is told, and keeps what it was asked."""

    address: str = ""
    status: int = 200
    answer: bytes = b"{}"
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list[tuple[str, dict[str, str], Any]])


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    told = Vendor()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            told.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}, json.loads(body)))
            self.send_response(told.status)
            if 300 <= told.status < 400:
                self.send_header("location", "https://example.test/elsewhere")
            if told.answer.startswith(b"\x1f\x8b"):
                self.send_header("content-encoding", "gzip")
            self.send_header("content-length", str(len(told.answer)))
            self.end_headers()
            self.wfile.write(told.answer)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield told
    server.shutdown()
    server.server_close()
    thread.join()


def lastro(*arguments: str, given: str | bytes | None = None, **environment: str) -> Result:
    return CliRunner().invoke(app, ["tokens", *arguments], input=given, env={"COLUMNS": "120", **environment})


def test_a_request_is_told_with_its_parts(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(CHAT))
    shown = lastro(str(file))
    assert shown.exit_code == 0, shown.output
    assert "8 tokens (exact)" in shown.output
    told = json.loads(lastro(str(file), "--json").stdout)
    assert told["model"] == "gpt-5.2"
    assert told["api"] == "openai.chat.completions"
    assert told["tokens"]["parts"] == {"content": 2, "framing": 6, "tools": 0}
    assert told["verified"] is None
    other = json.loads(lastro(str(file), "--model", "gpt-4o", "--json").stdout)
    assert other["tokens"]["value"] == 9


def test_a_text_is_counted_as_one_message() -> None:
    assert json.loads(lastro("-", "--model", "gpt-5.2", "--json", given="hello world").stdout)["tokens"]["value"] == 8
    assert json.loads(lastro("-", "--model", "gemini-3-flash", "--json", given="hello world").stdout)["tokens"]["value"] == 2
    looks = json.loads(lastro("-", "--text", "--model", "gpt-5.2", "--json", given=json.dumps(CHAT)).stdout)
    assert looks["tokens"]["value"] > 15
    other_json = json.loads(lastro("-", "--model", "gpt-5.2", "--json", given='{"a": [1, 2]}').stdout)
    assert other_json["tokens"]["parts"]["tools"] == 0


def test_notes_say_what_was_guessed_and_cannot_drive_the_terminal() -> None:
    shown = lastro("-", "--model", "claude-\x1b[31m", given="hello")
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output
    assert "No rule lists this model" in shown.output


@pytest.mark.parametrize(
    ("arguments", "given", "error"),
    [
        (["-"], "hello", CommandRefused),
        (["/no/such/file", "--model", "gpt-5.2"], None, CommandRefused),
        (["-", "--model", "abacus-1"], "hello", UnknownModel),
        (["-", "--model", "gpt-5.2"], b"\xff\xfe", LoneSurrogate),
        (["-", "--model", "gpt-5.2"], '{"messages":' + "[" * 100_000, InvalidJson),
        (["-", "--model", "gpt-5.2"], '{"messages": [], "temperature": NaN}', InvalidJson),
        (["-", "--model", "gpt-5.2", "--verify"], '{"input": "x", "temperature": -Infinity}', InvalidJson),
        (["-", "--model", "claude-opus-4-8"], '{"messages": [], "temperature": 1e999}', InvalidJson),
        (["-", "--model", "claude-opus-4-8", "--verify"], '{"messages": [], "a":' + "[" * 300 + "]" * 300 + "}", InvalidJson),
        (["-", "--model", "gpt-5.2"], b"x" * (64 * 1024 * 1024 + 1), BodyTooLarge),
    ],
)
def test_what_cannot_be_counted_is_refused(arguments: list[str], given: str | bytes | None, error: type[Exception]) -> None:
    done = lastro(*arguments, given=given)
    assert isinstance(done.exception, error)


@pytest.mark.parametrize(
    ("request_", "model", "environment", "answer", "path", "header"),
    [
        (CLAUDE, "claude-opus-4-8", ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"), "input_tokens", "/v1/messages/count_tokens", "x-api-key"),
        (
            GEMINI,
            "gemini-3-flash",
            ("GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
            "totalTokens",
            "/v1beta/models/gemini-3-flash:countTokens",
            "x-goog-api-key",
        ),
        (RESPONSES, "gpt-5.2", ("OPENAI_API_KEY", "OPENAI_BASE_URL"), "input_tokens", "/responses/input_tokens", "authorization"),
    ],
)
def test_the_vendor_is_asked_and_the_difference_kept(
    vendor: Vendor,
    tmp_path: Path,
    request_: dict[str, Any],
    model: str,
    environment: tuple[str, str],
    answer: str,
    path: str,
    header: str,
) -> None:
    vendor.answer = json.dumps({answer: 1_000}).encode()
    key, address = environment
    done = lastro(
        "-",
        "--model",
        model,
        "--verify",
        "--data",
        str(tmp_path),
        "--json",
        given=json.dumps(request_),
        **{key: KEY, address: vendor.address},
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["verified"] == {"vendor": 1_000, "difference": told["tokens"]["value"] - 1_000, "within": False}
    assert KEY not in done.output
    ((asked, headers, body),) = vendor.asked
    assert asked == path
    assert KEY in headers[header]
    assert KEY not in json.dumps(body)
    assert not {"max_tokens", "stream"} & body.keys()
    assert "hello world" in json.dumps(body)
    (check,) = token_checks.checks(tmp_path)
    assert (check.vendor, check.counted, check.within) == (1_000, told["tokens"]["value"], False)
    kept = (tmp_path / token_checks.FILE).read_text()
    assert "hello" not in kept
    assert KEY not in kept
    assert "1 checked, 1 outside" in token_checks.summary([check])


@pytest.mark.parametrize(
    ("status", "answer", "error"),
    [
        (401, b'{"error": "bad key sk-very-secret-key"}', CommandRefused),
        (404, b"{}", CommandRefused),
        (429, b"{}", Unavailable),
        (503, b"{}", Unavailable),
        (302, b"{}", Unavailable),
        (200, b"not json", Unavailable),
        (200, b'{"input_tokens": true}', Unavailable),
        (200, b'{"input_tokens": -1}', Unavailable),
        (200, b"[" * 100_000, Unavailable),
        (200, b'{"input_tokens": 100000000000000000000000000000000}', Unavailable),
        (200, b'{"input_tokens": 1' + b"0" * 5_000 + b"}", Unavailable),
        (200, b'{"input_tokens": 1.0}', Unavailable),
        (200, b'{"input_tokens": NaN}', Unavailable),
        (200, b'{"input_tokens": 5}' + b" " * 1_000_000, Unavailable),
        (200, gzip.compress(b'{"input_tokens": 5}' + b" " * 1_000_000), Unavailable),
    ],
)
def test_a_vendor_that_refuses_or_talks_nonsense(vendor: Vendor, status: int, answer: bytes, error: type[Exception]) -> None:
    vendor.status, vendor.answer = status, answer
    with pytest.raises(error) as refused:
        vendor_tokens("anthropic.messages", "m", CLAUDE, {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": vendor.address})
    assert KEY not in str(refused.value)
    assert len(vendor.asked) == 1


@pytest.mark.parametrize("address", ["http://example.test", "ftp://127.0.0.1", "nonsense", "http://[::1", "http://127.0.0.1.example.test"])
def test_a_key_is_sent_over_tls_or_not_at_all(address: str) -> None:
    with pytest.raises(CommandRefused):
        vendor_tokens("anthropic.messages", "m", CLAUDE, {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": address})


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-secr\u00e9t", "sk secret", "sk-\udce9secret", "sk-\x00secret"])
def test_a_key_that_cannot_be_one_is_told_and_not_repeated(vendor: Vendor, key: str) -> None:
    with pytest.raises(CommandRefused) as refused:
        vendor_tokens("anthropic.messages", "m", CLAUDE, {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": vendor.address})
    assert "ANTHROPIC_API_KEY" in refused.value.hint
    assert "sk" not in f"{refused.value.message} {refused.value.hint}"
    assert refused.value.__cause__ is None
    assert vendor.asked == []


@pytest.mark.parametrize(("odd", "error"), [(float("nan"), InvalidJson), ("\ud800", LoneSurrogate)])
def test_what_json_cannot_hold_is_not_sent(vendor: Vendor, odd: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        vendor_tokens("anthropic.messages", "m", {"messages": [odd]}, {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": vendor.address})
    with pytest.raises(LoneSurrogate):
        vendor_tokens("google.generate_content", "\ud800", GEMINI, {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": vendor.address})
    assert vendor.asked == []


def test_nan_in_a_text_is_a_word() -> None:
    assert lastro("-", "--model", "gpt-5.2", given='{"a": NaN}').exit_code == 0


def test_without_a_key_or_a_counter_nothing_is_asked() -> None:
    with pytest.raises(CommandRefused) as refused:
        vendor_tokens("anthropic.messages", "m", CLAUDE, {})
    assert "ANTHROPIC_API_KEY" in refused.value.hint
    with pytest.raises(CommandRefused):
        vendor_tokens("deepseek.chat.completions", "m", CHAT, {"DEEPSEEK_API_KEY": KEY})
    assert all(counter.address.startswith("https://") for counter in COUNTERS.values())


def test_a_model_cannot_lead_to_another_address(vendor: Vendor) -> None:
    vendor.answer = b'{"totalTokens": 1}'
    environment = {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": vendor.address}
    assert vendor_tokens("google.generate_content", "x/gemini-3?a=b#c", GEMINI, environment) == 1
    assert vendor.asked[0][0] == "/v1beta/models/gemini-3%3Fa%3Db%23c:countTokens"


def test_damaged_checks_are_passed_over(tmp_path: Path) -> None:
    assert token_checks.checks(tmp_path) == []
    (tmp_path / token_checks.FILE).write_bytes(b'\xff\n{"at": 1}\n{\n')
    assert token_checks.checks(tmp_path) == []
    assert "none checked" in token_checks.summary([])
