"""Our count of recorded requests beside the vendors' own, and what neutral markdown saves against the JSON of tool results.

Requests of texts and function tools alone are told apart from those that hold what cannot be counted: files, images, encrypted reasoning, tools
and state of the vendor's. The same request counts once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from adapters.counting import CountedRequest, Service, count_request
from adapters.counting.native import as_dict, as_list, as_text, blocks, camel_keys
from adapters.counting.rules import rule_for
from adapters.counting.sums import Sum
from adapters.importers.markdown import decode, json_to_markdown, markdown_to_json
from adapters.tokenizers import Tokenizers
from benchmarks.measuring import Figure, OnProgress, at_least, at_most, percentile, plain

NAME: Final = "token-counts"
FOLDER: Final = Path("exchanges")
RUNS: Final = Path("tau_airline") / "runs.jsonl"
SMALL: Final = 200
"""Requests of so many tokens and fewer are left out of the targets: there a single token is half a per cent."""

FILES: Final = {
    "GPT": ("openai_chat.jsonl", "openai_responses.jsonl"),
    "DeepSeek": ("deepseek_chat.jsonl",),
    "Gemini": ("gemini.jsonl",),
    "Claude": ("anthropic_messages.jsonl", "anthropic_count_tokens.jsonl"),
}
TARGETS: Final = {"GPT": (1.0, 5.0), "DeepSeek": (1.0, 5.0), "Gemini": (5.0, 10.0), "Claude": (5.0, 10.0)}
"""At most so many per cent in the median and at p95."""
WITHIN: Final = 95.0
SAVED: Final = 25.0

COUNTABLE: Final = frozenset({"model_not_listed", "schema_refers_to_itself", "calls_at_once"})
"""Notes of requests that hold only texts and function tools."""
REASONED: Final = COUNTABLE | {"reasoning_encrypted"}

MODELS: Final = {
    "GPT": "gpt-5.2",
    "DeepSeek": "deepseek-chat",
    "Gemini": "gemini-3-flash",
    "Claude to 4.6": "claude-sonnet-4-6",
    "Claude from 4.7": "claude-opus-4-8",
}
"""Whose tokens of tool results are counted."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One recorded request counted by us and by its vendor."""

    id: str
    model: str
    counted: CountedRequest
    vendor: int

    @property
    def error(self) -> float:
        """Relative, %."""
        return 100 * abs(self.counted.tokens.value - self.vendor) / self.vendor

    @property
    def within(self) -> bool:
        return self.counted.tokens.low <= self.vendor <= self.counted.tokens.high


class Lost(Exception):
    """A value was not read back from the markdown as it was: the benchmark ends, as its figures would mean nothing."""


async def measure(data: Path, on_progress: OnProgress) -> list[Figure]:
    """Count everything. Raises Lost."""
    tokenizers = Tokenizers()
    figures: list[Figure] = []
    for done, (vendor, names) in enumerate(FILES.items()):
        on_progress("vendors", done, len(FILES))
        found = [pair for name in names for pair in pairs(data / FOLDER / name, tokenizers)]
        figures += _figures(vendor, found)
    for source, texts in (("tau_airline", tau_results(data / RUNS)), ("exchanges", exchange_results(data / FOLDER))):
        figures += _compression(source, list(texts), tokenizers, on_progress)
    return figures


def pairs(file: Path, tokenizers: Tokenizers) -> Iterator[Pair]:
    """The recorded requests of a file that the vendor answered with a count, each once."""
    seen: set[str] = set()
    for line in file.read_text("utf-8").splitlines():
        told = as_dict(json.loads(line))
        request, vendor = as_dict(told.get("request")), charged(as_dict(told.get("response")))
        address = as_text(told.get("uri_path"))
        named = re.search(r"models/([^:/]+)", address)
        model = as_text(request.get("model")) or (named[1] if named is not None else "")
        key = json.dumps([model, address, request], sort_keys=True)
        if not vendor or key in seen:
            continue
        seen.add(key)
        service = Service.VERTEX if "/projects/" in address else Service.DEVELOPER
        yield Pair(as_text(told.get("id")), model, count_request(model, request, tokenizers, service=service), vendor)


def charged(response: Mapping[str, Any]) -> int:
    """Input tokens by the vendor, those from its cache and into it included."""
    usage = as_dict(response.get("usage", response.get("usageMetadata"))) or dict(response)
    for name in ("prompt_tokens", "promptTokenCount"):
        if isinstance(usage.get(name), int):
            return usage[name]
    numbers = (usage.get(name) for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"))
    return sum(number for number in numbers if isinstance(number, int))


def _figures(vendor: str, found: list[Pair]) -> list[Figure]:
    typical, worst = TARGETS[vendor]
    countable = [pair for pair in found if set(pair.counted.notes) <= COUNTABLE]
    figures = [plain(NAME, vendor, "requests of texts and function tools", len(countable), "")]
    large = [pair for pair in countable if pair.vendor > SMALL]
    figures.append(plain(NAME, vendor, f"of them above {SMALL} tokens", len(large), ""))
    if large:
        errors = [pair.error for pair in large]
        figures.append(at_most(plain(NAME, vendor, "error, median", median(errors), "%"), typical))
        figures.append(at_most(plain(NAME, vendor, "error, p95", percentile(errors, 0.95), "%"), worst))
        figures.append(at_least(plain(NAME, vendor, "within the bounds told", _share_within(large), "%"), WITHIN))
        widths = [100 * (pair.counted.tokens.high - pair.counted.tokens.low) / pair.vendor for pair in large]
        figures.append(plain(NAME, vendor, "width of the bounds, median", median(widths), "%"))
    if countable:
        figures.append(plain(NAME, vendor, "all of them within the bounds told", _share_within(countable), "%"))
    reasoned = [pair for pair in found if set(pair.counted.notes) <= REASONED and pair.vendor > SMALL]
    if len(reasoned) > len(large):
        figures.append(
            plain(NAME, vendor, f"with encrypted reasoning, {len(reasoned)}: error, median", median(p.error for p in reasoned), "%")
        )
        figures.append(plain(NAME, vendor, "the same, p95", percentile((p.error for p in reasoned), 0.95), "%"))
    other = [pair for pair in found if not set(pair.counted.notes) <= REASONED]
    if other:
        figures.append(
            plain(NAME, vendor, f"with files, images or the vendor's own, {len(other)}: within the bounds", _share_within(other), "%")
        )
    return figures


def _share_within(found: list[Pair]) -> float:
    return 100 * sum(pair.within for pair in found) / len(found)


def tau_results(file: Path) -> Iterator[str]:
    """What tools returned in the agent runs."""
    for line in file.read_text("utf-8").splitlines():
        for message in as_list(as_dict(json.loads(line)).get("traj")):
            if as_dict(message).get("role") == "tool":
                yield as_text(as_dict(message).get("content"))


def exchange_results(folder: Path) -> Iterator[str]:
    """What tools returned in the recorded requests, each once."""
    found: dict[str, None] = {}
    for names in FILES.values():
        for name in names:
            for line in (folder / name).read_text("utf-8").splitlines():
                found.update(dict.fromkeys(_results(as_dict(as_dict(json.loads(line)).get("request")))))
    yield from found


def _results(request: Mapping[str, Any]) -> Iterator[str]:
    for message in map(as_dict, as_list(request.get("messages"))):
        if message.get("role") == "tool":
            yield as_text(message.get("content"))
        for block in blocks(message.get("content")):
            if block.get("type") == "tool_result":
                yield from (as_text(inner.get("text")) for inner in blocks(block.get("content")))
    given = request.get("input")
    for item in map(as_dict, as_list(given)):
        if item.get("type") == "function_call_output":
            yield as_text(item.get("output"))
    for turn in map(as_dict, as_list(request.get("contents"))):
        for part in (camel_keys(as_dict(each)) for each in as_list(turn.get("parts"))):
            response = as_dict(as_dict(part.get("functionResponse")).get("response"))
            if response:
                yield json.dumps(response, ensure_ascii=False)


def _compression(source: str, texts: list[str], tokenizers: Tokenizers, on_progress: OnProgress) -> list[Figure]:
    both: list[tuple[str, str]] = []
    for done, text in enumerate(texts):
        on_progress(f"results of {source}", done, len(texts))
        if text.lstrip()[:1] in {"{", "["}:
            try:
                value = decode(text)
            except ValueError:
                continue
            markdown = json_to_markdown(value)
            if markdown_to_json(markdown) != value:
                raise Lost(f"a result of {source} was not read back as it was")
            both.append((text, markdown))
    figures = [plain(NAME, source, "results that are JSON, all read back", len(both), "")]
    for vendor, model in MODELS.items():
        found = rule_for(model)
        assert found is not None
        counts = Sum(found.rule.text, tokenizers)
        before = sum(counts.measure(text).value for text, _ in both)
        after = sum(counts.measure(markdown).value for _, markdown in both)
        if before:
            figures.append(plain(NAME, source, f"tokens as JSON, {vendor}", before, ""))
            figures.append(at_least(plain(NAME, source, f"fewer as neutral markdown, {vendor}", 100 * (1 - after / before), "%"), SAVED))
    return figures
