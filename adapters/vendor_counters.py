"""The vendors' own counters of input tokens, asked over HTTP with a key of the caller's. Nothing is sent unless somebody asks for it.

Anthropic's ``count_tokens`` calls itself an estimate; Gemini's ``countTokens`` and OpenAI's ``input_tokens`` count what would be charged.
DeepSeek and Chat Completions have none. A key goes into a header of this one request, and into no message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import quote, urlsplit

import httpx2

from adapters.counting.native import Json, as_dict
from graph.model import errors

TIMEOUT_S: Final = 30.0
_MOST_ANSWER: Final = 1_000_000
"""Bytes of an answer."""
_MOST_TOKENS: Final = 10**9
"""Far over the window of any model."""
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_OK: Final = 200
_PIECE: Final = 65_536
_OTHER_ADDRESS: Final = "Look whether the address is the vendor's."
_BAD: Final = 400
_SERVER: Final = 500
_BUSY: Final = 429

_ANTHROPIC_FIELDS: Final = ("messages", "model", "system", "tools", "tool_choice", "thinking", "output_config", "mcp_servers")
_OPENAI_FIELDS: Final = (
    "model", "input", "instructions", "tools", "tool_choice", "text", "reasoning", "truncation", "parallel_tool_calls", "previous_response_id",
    "conversation",
)  # fmt: skip
"""Fields that the counters take; what only says how to answer is left out."""


@dataclass(frozen=True, slots=True)
class VendorCounter:
    """Where a vendor counts, and which variables hold its key and another address; the latter are those of its own SDK."""

    address: str
    address_variable: str
    key_variables: tuple[str, ...]
    answer: str


COUNTERS: Final[Mapping[str, VendorCounter]] = {
    "anthropic.messages": VendorCounter("https://api.anthropic.com", "ANTHROPIC_BASE_URL", ("ANTHROPIC_API_KEY",), "input_tokens"),
    "google.generate_content": VendorCounter(
        "https://generativelanguage.googleapis.com", "GOOGLE_GEMINI_BASE_URL", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "totalTokens"
    ),
    "openai.responses": VendorCounter("https://api.openai.com/v1", "OPENAI_BASE_URL", ("OPENAI_API_KEY",), "input_tokens"),
}


def vendor_tokens(api: str, model: str, request: Mapping[str, Any], environment: Mapping[str, str]) -> int:
    """The vendor's own count of a native request; ``api`` is the form that ``count_request`` found.

    Raises:
        CommandRefused: the vendor has no counter for this form, there is no key or a bad one, or it refused the request or the key.
        InvalidJson, LoneSurrogate: JSON cannot hold the request.
        Unavailable: it does not answer, or not as it should.
    """
    counter = COUNTERS.get(api)
    if counter is None:
        raise errors.CommandRefused(
            "This vendor has no counter for such a request.",
            hint="Anthropic (Messages), Gemini and OpenAI (Responses) have one. Leave --verify out for the others.",
        )
    key = next((environment[name] for name in counter.key_variables if environment.get(name)), None)
    if key is None:
        raise errors.CommandRefused("There is no key for the vendor.", hint=f"Set {' or '.join(counter.key_variables)}.")
    if not key.isascii() or not key.isprintable() or " " in key:
        # Told here, since the failure to send it would repeat it.
        raise errors.CommandRefused(
            "The vendor's key holds a blank, a line end or a letter that no key has.",
            hint=f"Look at {' or '.join(counter.key_variables)}: a line end often comes from the file that it was read from.",
        )
    address = (environment.get(counter.address_variable) or counter.address).rstrip("/")
    _check_address(address, counter.address_variable)
    path, headers, body = _asked(api, model, request, key)
    return _asked_for(f"{address}{path}", headers, body, counter.answer)


def _asked(api: str, model: str, request: Mapping[str, Any], key: str) -> tuple[str, dict[str, str], Json]:
    if api == "anthropic.messages":
        body = {name: request[name] for name in _ANTHROPIC_FIELDS if name in request}
        return "/v1/messages/count_tokens", {"x-api-key": key, "anthropic-version": "2023-06-01"}, {**body, "model": model}
    if api == "openai.responses":
        body = {name: request[name] for name in _OPENAI_FIELDS if name in request}
        return "/responses/input_tokens", {"authorization": f"Bearer {key}"}, {**body, "model": model}
    bare = model.rsplit("/", 1)[-1]
    path = f"/v1beta/models/{quote(bare, safe='', errors='replace')}:countTokens"
    return path, {"x-goog-api-key": key}, {"generateContentRequest": {**request, "model": f"models/{bare}"}}


def _check_address(address: str, variable: str) -> None:
    """A key goes over TLS, or stays on this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        host, parts = None, None
    if parts is None or host is None or not (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)):
        raise errors.CommandRefused(
            "The vendor's address is not one to send a key to.", hint=f"Set {variable} to an https address, or unset it."
        )


def _asked_for(address: str, headers: dict[str, str], body: Json, answer: str) -> int:
    content = _encoded(body)
    # As it is on the wire: a small answer that unpacks to a large one is not unpacked.
    headers = {**headers, "content-type": "application/json", "accept-encoding": "identity"}
    told = b""
    try:
        with (
            httpx2.Client(timeout=TIMEOUT_S, follow_redirects=False) as client,
            client.stream("POST", address, headers=headers, content=content) as response,
        ):
            for piece in response.iter_raw(_PIECE) if response.status_code == _OK else ():
                told += piece
                if len(told) > _MOST_ANSWER:
                    raise errors.Unavailable("The vendor's counter answered more than a number.", hint=_OTHER_ADDRESS)
    except (httpx2.TransportError, UnicodeEncodeError, httpx2.InvalidURL):
        raise errors.Unavailable("The vendor's counter does not answer.", hint="Look at your connection, and try again.") from None
    status = response.status_code
    if status == _BUSY or status >= _SERVER:
        raise errors.Unavailable(f"The vendor's counter answered {status}.", hint="Try again later.")
    if status >= _BAD:
        raise errors.CommandRefused(
            f"The vendor's counter refused the request with {status}.",
            hint="401 and 403: look at the key. 400 and 404: at the model and the request.",
        )
    found = as_dict(_parsed(told)).get(answer) if status == _OK else None
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= _MOST_TOKENS:
        raise errors.Unavailable("The vendor's counter gave no number that could be one of tokens.", hint=_OTHER_ADDRESS)
    return found


def _encoded(body: Json) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise errors.LoneSurrogate("The request holds a lone surrogate.") from None
    except (ValueError, RecursionError):
        raise errors.InvalidJson("JSON cannot hold the request.") from None


def _parsed(told: bytes) -> object:
    try:
        return cast("object", json.loads(told))
    except (ValueError, RecursionError):
        return None
