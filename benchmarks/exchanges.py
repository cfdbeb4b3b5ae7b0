"""Recorded exchanges with the vendors, imported by the path of `lastro import` and written again as a request of every vendor.

Counted is what must hold for all of them: a run for each, every result tied to its call, every request what the vendor's own types take, and
what a vendor's form reads back equal to what was written, or a note that says what it could not hold.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

from adapters.conformance.vendor_types import validator
from adapters.importers.transcript_files import Run, read_runs
from adapters.importers.transcript_units import convert
from adapters.transcripts.forms import FORMS
from adapters.transcripts.model import Call, Result, Turn
from adapters.transcripts.pairs import NO_RESULT
from benchmarks.measuring import Figure, OnProgress, at_least, at_most, plain
from graph.model.content import check_content
from graph.model.units import ContextUnit, EdgeType, Kind

NAME = "exchanges"
FOLDER = Path("exchanges")
ENGINE = "none"
APIS = {
    "openai-chat": "openai.chat.completions",
    "openai-responses": "openai.responses",
    "anthropic": "anthropic.messages",
    "gemini": "google.generate_content",
    "deepseek": "deepseek.chat.completions",
}
MODELS = {
    "openai-chat": "gpt-5.2",
    "openai-responses": "gpt-5.2",
    "anthropic": "claude-opus-4-8",
    "gemini": "gemini-3-flash-preview",
    "deepseek": "deepseek-v4",
}
"""A model of each, for what differs from model to model."""


@dataclass(slots=True)
class Imported:
    """What a file became."""

    exchanges: int = 0
    failed: int = 0
    units: int = 0
    results: int = 0
    tied: int = 0
    originals: int = 0


@dataclass(slots=True)
class Rewritten:
    """What the transcripts became as requests of one vendor."""

    requests: int = 0
    refused: int = 0
    same: int = 0
    noted: int = 0
    lost: int = 0
    notes: Counter[str] = field(default_factory=Counter[str])


async def measure(data: Path, on_progress: OnProgress) -> list[Figure]:
    """Every exchange of every file in the folder, by file and by vendor."""
    figures: list[Figure] = []
    rewritten = {form: Rewritten() for form in FORMS}
    units: dict[str, ContextUnit] = {}
    for source in sorted((data / FOLDER).glob("*.jsonl")):
        found = Imported()
        total = sum(1 for line in source.open("rb") if line.strip())
        for number, run in enumerate(read_runs(source), 1):
            _import(run, units, found)
            for form, told in rewritten.items():
                _rewrite(run.turns(Counter()), form, told)
            on_progress(source.stem, number, total)
        figures += _of_file(source.stem, total, found)
    for form, told in rewritten.items():
        figures += _of_form(form, told)
    return figures


def _import(run: Run, units: dict[str, ContextUnit], found: Imported) -> None:
    converted = convert(run)
    found.exchanges += 1
    found.failed += run.failure is not None
    found.units += len(converted.units)
    found.originals += len(converted.originals)
    for unit in converted.units:
        check_content(unit.content)
        units[unit.id] = unit
        if unit.kind is Kind.TOOL_RESULT:
            found.results += 1
            found.tied += _is_tied(unit, units)


def _is_tied(unit: ContextUnit, units: dict[str, ContextUnit]) -> bool:
    """Whether the one cause of a result is the call that it answers."""
    causes = [units[relation.target_id] for relation in unit.relations if relation.edge_type is EdgeType.CAUSATION]
    if len(causes) != 1 or causes[0].kind is not Kind.DECISION:
        return False
    call, answer = causes[0].metadata.tool, unit.metadata.tool
    return call is not None and answer is not None and (call.name, call.call_id) == (answer.name, answer.call_id)


def _rewrite(turns: list[Turn], name: str, told: Rewritten) -> None:
    form = FORMS[name]
    # When something was said, and that a request failed, is of the record: no other request has a place for it.
    turns = [replace(turn, time=None) for turn in turns if turn.role != "error"]
    written = form.write(turns, model=MODELS[name])
    payload = {"model": MODELS[name], **written.request}
    if name == "anthropic":
        payload["max_tokens"] = 1024
    told.requests += 1
    told.refused += any(True for _ in validator(APIS[name])(payload))
    back = form.turns(form.messages(written.request, None), Counter())
    # Results that say that there was none are an addition; without them what was written must come back.
    back = [turn for turn in back if not any(isinstance(part, Result) and part.text == NO_RESULT for part in turn.parts)]
    told.notes += written.notes
    if _with_ids_of(turns, back) == turns:
        told.same += 1
    elif written.notes:
        told.noted += 1
    else:
        told.lost += 1


def _with_ids_of(turns: list[Turn], back: list[Turn]) -> list[Turn]:
    """What was read back, without the ids that were made up for calls that had none."""
    found: list[Turn] = []
    for before, after in zip_longest(turns, back):
        parts = [*(before.parts if before else ())]
        if after is not None:
            kept = [
                replace(part, call_id=None)
                if isinstance(part, Call | Result) and isinstance(own, Call | Result) and own.call_id is None
                else part
                for own, part in zip_longest(parts, after.parts)
                if part is not None
            ]
            found.append(replace(after, parts=tuple(kept)))
    return found


def _of_file(name: str, total: int, found: Imported) -> list[Figure]:
    def share(what: str, part: int, whole: int) -> Figure:
        return at_least(plain(NAME, ENGINE, f"{name}: {what}", 100 * part / whole if whole else 100, "%"), 100)

    return [
        share(f"{total} exchanges imported", found.exchanges, total),
        share(f"{found.results} results tied to their call", found.tied, found.results),
        plain(NAME, ENGINE, f"{name}: failed requests", found.failed, ""),
        plain(NAME, ENGINE, f"{name}: units", found.units, ""),
        plain(NAME, ENGINE, f"{name}: originals", found.originals, ""),
    ]


def _of_form(form: str, told: Rewritten) -> list[Figure]:
    return [
        at_most(plain(NAME, ENGINE, f"as {form}: of {told.requests} requests refused by its types", told.refused, ""), 0),
        plain(NAME, ENGINE, f"as {form}: read back the same", told.same, ""),
        plain(NAME, ENGINE, f"as {form}: with a note of what it cannot hold", told.noted, ""),
        at_most(plain(NAME, ENGINE, f"as {form}: lost without a note", told.lost, ""), 0),
        *(plain(NAME, ENGINE, f"as {form}: {note}", times, "") for note, times in told.notes.most_common()),
    ]
