"""`lastro tokens`: what a request or a text costs a model, counted here, and on wish by the vendor too."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from adapters.counting import CountedRequest, Service, count_request, count_text
from adapters.counting.request import NOTES
from adapters.tokenizers import Tokenizers
from adapters.vendor_counters import vendor_tokens
from app import token_checks
from app.cli import options, output
from app.settings import load_settings
from graph.model.errors import BodyTooLarge, CommandRefused, InvalidJson, LoneSurrogate

EXAMPLES = (
    "Examples:  lastro tokens request.json --model gpt-5.2   |   echo Hello | lastro tokens - --model claude-opus-4-8   |   "
    "lastro tokens request.json --model gemini-3-flash --verify --json"
)

MOST_BYTES = 64 * 1024 * 1024


def tokens(
    file: Annotated[str, typer.Argument(help="A native request as JSON, or a text; - reads standard input.")],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="The model it is for; the request's own when left out.", show_default=False)
    ] = None,
    as_text: Annotated[bool, typer.Option("--text", help="Take it for a text even if it looks like a request.")] = False,
    service: Annotated[Service, typer.Option(help="Where Gemini is asked: the same request costs less on Vertex AI.")] = Service.DEVELOPER,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Send it to the vendor's own counter as well, with the key in the environment; the difference is kept."
        ),
    ] = False,
    data: options.Data = None,
    as_json: options.Json = False,
) -> None:
    """Count the tokens of a whole native request (messages, system, tools, calls, results, images), or of a text as one user message."""
    raw = _read(file)
    request = None if as_text else _request(raw)
    asked = model or (request.get("model") if request is not None else None)
    if not isinstance(asked, str) or not asked:
        raise CommandRefused("Nothing says which model it is for.", hint="Add --model, such as --model gpt-5.2.")
    tokenizers = Tokenizers()
    if request is None:
        request = {}
        counted = count_text(asked, raw, tokenizers)
    else:
        counted = count_request(asked, request, tokenizers, service=service)
    check = None
    if verify:
        sent = request or {
            "messages": [{"role": "user", "content": raw}],
            "input": raw,
            "contents": [{"role": "user", "parts": [{"text": raw}]}],
        }
        check = _verified(asked, counted, sent, data)
    if as_json:
        output.print_json(
            {
                "model": asked,
                **counted.model_dump(mode="json"),
                "verified": None if check is None else {"vendor": check.vendor, "difference": check.difference, "within": check.within},
            }
        )
        return
    _print(asked, counted, check)


def _verified(model: str, counted: CountedRequest, request: dict[str, Any], data: Path | None) -> token_checks.TokenCheck:
    wanted = {"anthropic.messages": "messages", "google.generate_content": "contents", "openai.responses": "input"}.get(counted.api)
    sent = request if wanted is None else {name: value for name, value in request.items() if name == wanted or name not in _FORMS}
    vendor = vendor_tokens(counted.api, model, sent, os.environ)
    folder = load_settings(data=data).data
    try:
        return token_checks.record(folder, model, counted, vendor)
    except OSError:
        raise CommandRefused("The check cannot be kept.", hint="Point --data to a folder that can be written.") from None


_FORMS = frozenset({"messages", "contents", "input"})


def _read(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read(MOST_BYTES + 1) if file == "-" else _bytes_of(Path(file))
    except OSError:
        raise CommandRefused("The file cannot be read.", hint="Name a regular file, or - for standard input.") from None
    if len(raw) > MOST_BYTES:
        raise BodyTooLarge(f"It is larger than {MOST_BYTES // 1024 // 1024} MiB.", hint="No model takes that much.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LoneSurrogate("It is not a text in UTF-8.", hint="Send a native request as JSON, or a text, in UTF-8.") from None


def _bytes_of(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(MOST_BYTES + 1)


def _request(raw: str) -> dict[str, Any] | None:
    """The request when the text is one: a JSON object with messages, contents or input. Other JSON is a text."""
    if not raw.lstrip().startswith("{"):
        return None
    outside: list[str] = []

    def number(literal: str) -> float:
        value = float(literal)
        if not math.isfinite(value):
            outside.append(literal)
        return value

    try:
        # Python takes NaN, Infinity and 1e999, which no vendor does. In a text that is no request they are just words.
        found: object = json.loads(raw, parse_constant=number, parse_float=number)
    except RecursionError:
        raise InvalidJson from None
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    request = cast("dict[str, Any]", found)
    if not _FORMS & request.keys():
        return None
    if outside:
        raise InvalidJson("The request holds a number that JSON does not have: NaN, Infinity, or one too large.")
    return request


def _print(model: str, counted: CountedRequest, check: token_checks.TokenCheck | None) -> None:
    told = counted.tokens
    bounds = "" if told.low == told.high else f", {output.count(told.low)} to {output.count(told.high)}"
    output.out.print(f"{output.count(told.value)} tokens ({told.method}{bounds})", markup=False)
    rows = [("content", told.parts.content), ("framing", told.parts.framing), ("tools", told.parts.tools)]
    output.table(["part", "tokens"], [(name, output.count(value)) for name, value in rows], right=(1,))
    output.out.print(f"{output.printable(model)}: {counted.api}, rules of {counted.rule}, {told.tokenizer}", markup=False)
    if check is not None:
        within = "within the bounds" if check.within else "outside of the bounds"
        output.out.print(f"The vendor counts {output.count(check.vendor)}: {check.difference:+d} here, {within}.", markup=False)
    for note in counted.notes:
        output.err.print(f"  {NOTES[note]}", markup=False)
