"""The runs of a transcript's file: one JSON document, JSON lines read one at a time, or the events of a stream.

A run is what ``records.record_of`` knows: messages, a request, an answer, an exchange of the two. A document is a run, a list of runs, or an
object with ``runs`` that share its ``task_id``; each of these may name its ``agent``, ``model`` and ``session_id``, and its steps follow those
of the run before it. An answer that goes on from an earlier one in the file (``previous_response_id``) answers the calls of that one.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import JsonValue

from adapters.importers.json_literals import DuplicateKey, decode
from adapters.importers.records import Record, is_message, record_of
from adapters.importers.streams import begins, stream_id
from adapters.transcripts.fields import is_id
from adapters.transcripts.forms import FORMS
from adapters.transcripts.model import Call, Malformed, Result, Text, Turn
from graph.model import errors
from graph.model.base import BLANK

MAX_DOCUMENT_BYTES: Final = 200 * 2**20
MAX_LINE_BYTES: Final = 64 * 2**20
MAX_KEY_CHARACTERS: Final = 100
"""Of a run's key, so that ids made of it stay ids."""

_KEYS: Final = ("id", "run_id", "conversation_id", "custom_id")
MAX_EVENTS: Final = 1_000_000
"""Of one stream, which is held whole until it ends."""
_MOST_ANSWERS: Final = 10_000
"""Answers of a file whose calls are kept for those that go on from them."""
_MOST_BACK: Final = 1_000
"""Answers with calls that a run is looked up in, from the nearest; vendors want each call answered by the next request."""
_MOST_GUESSED: Final = 128
"""Calls of the nearest answer that a result may mean that names none of them."""
_EVENT_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """A call of an earlier run that a result of this one may answer."""

    unit: str
    name: str
    call_id: str | None


@dataclass(frozen=True, slots=True, eq=False)
class _Answer:
    """The calls of an answer, and the nearest answer with calls that it goes on from: a chain of any length holds each call once."""

    calls: tuple[EarlierCall, ...]
    by_id: Mapping[str, list[EarlierCall]]
    before: _Answer | None


class NamedBefore(Mapping[str, str]):
    """Unit ids by the ids of messages in the runs before one: all runs of a task share one index, and each sees a part of it."""

    def __init__(self, index: Mapping[str, list[tuple[int, str]]], run: int) -> None:
        self._index = index
        self._run = run

    def __getitem__(self, name: str) -> str:
        named = self._index[name]
        place = bisect_left(named, (self._run, ""))
        if place == 0:
            raise KeyError(name)
        return named[place - 1][1]

    def __iter__(self) -> Iterator[str]:
        return (name for name, named in self._index.items() if named[0][0] < self._run)

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, slots=True)
class Run:
    """One run as it stands in the file. ``key`` is unique in the file and begins the ids of its units."""

    key: str
    task_id: str
    session_id: str
    messages: list[JsonValue]
    """In the form of the vendor that ``form`` names."""
    line: int
    """Where it begins, from 1."""
    agent_id: str | None = None
    model: str | None = None
    first_step: int = 0
    """Steps that other runs of the same task took before."""
    known: Mapping[str, str] = field(default_factory=dict[str, str])
    """Unit ids by the ids of messages in earlier runs of the same task."""
    form: str = "openai-chat"
    failure: str | None = None
    """Why there is no answer, when the request was refused."""
    earlier: tuple[EarlierCall, ...] = ()

    def turns(self, notes: Counter[str]) -> list[Turn]:
        """The turns of the run, a refused request as the last. Raises ImportRefused, naming run and message."""
        try:
            turns = FORMS[self.form].turns(self.messages, notes)
        except Malformed as failure:
            raise errors.ImportRefused(f"Message {failure.index} of run {self.key} {failure.why}.").at(
                index=self.line, field=f"messages.{failure.index}"
            ) from None
        return turns if self.failure is None else [*turns, Turn("error", (Text(self.failure),))]


def read_runs(path: Path, task_id: str | None = None, form: str | None = None) -> Iterator[Run]:
    """The runs of the file, in order. ``task_id`` replaces the file's own; with ``-1``, ``-2``, … when there are several. ``form`` is that of
    all runs; each shows its own when left out.

    Raises ImportRefused, naming the line, for what is no such file.
    """
    task = None if task_id is None else clean_id(task_id)
    runs = _continued(_runs(path, task, form))
    first = next(runs, None)
    if first is None:
        raise errors.ImportRefused("The file holds no run.")
    second = next(runs, None)
    for number, run in enumerate(chain([first], [second] if second is not None else [], runs), 1):
        if task is None or run.key != run.task_id:
            yield run
            continue
        name = task if second is None else clean_id(f"{task}-{number}")
        yield replace(run, key=name, task_id=name, session_id=name if run.session_id == run.key else run.session_id)


def clean_id(text: str) -> str:
    """An id as near to the text as may be, at most ``MAX_KEY_CHARACTERS``; what had to be changed ends with a digest of the text."""
    if len(text) <= MAX_KEY_CHARACTERS and is_id(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    visible = "".join(
        character if character.isprintable() and not character.isspace() and character not in BLANK else "_"
        for character in text[:MAX_KEY_CHARACTERS]
    )
    return f"{visible[: MAX_KEY_CHARACTERS - 13]}~{digest}"


def unit_id(key: str, index: int, part: str) -> str:
    """The id of a unit: run, position of its message (from 0), and what it is. Ids sort as the messages stand."""
    return f"{key}:{index:04d}:{part}" if index < 10_000 else f"{key}:z{index:08d}:{part}"  # noqa: PLR2004 - four digits


def first_part(turn: Turn) -> str:
    """What the first unit of a turn is called in its id; reasoning stands before it as ``analysis``."""
    match turn.role:
        case "assistant":
            calls = any(isinstance(part, Call) for part in turn.parts)
            own_text = turn.hints.get("kind") not in (None, "decision") and any(isinstance(part, Text) for part in turn.parts)
            return "text" if own_text or not calls else "call"
        case "tool":
            return "result"
        case role:
            return role


def call_part(number: int) -> str:
    """What the unit of a turn's call is called in its id; ``number`` counts the calls from 1."""
    return "call" if number == 1 else f"call-{number:03d}"


def _continued(runs: Iterator[tuple[Run, Record | None]]) -> Iterator[Run]:
    """The runs with the calls that they answer though others made them."""
    answers: dict[str, _Answer | None] = {}
    for run, record in runs:
        before = None if record is None else answers.get(record.previous_response_id or "")
        if record is None or (record.response_id is None and before is None):
            yield run
            continue
        turns = run.turns(Counter())
        if record.response_id is not None:
            if len(answers) >= _MOST_ANSWERS:
                del answers[next(iter(answers))]
            answers[record.response_id] = _answer(run, turns, before)
        earlier = _answered(turns, before)
        yield replace(run, earlier=earlier) if earlier else run


def _answer(run: Run, turns: list[Turn], before: _Answer | None) -> _Answer | None:
    """The answer that a run ends with; the one before when the run calls nothing."""
    calls: list[EarlierCall] = []
    by_id: dict[str, list[EarlierCall]] = {}
    for index, turn in enumerate(turns):
        for number, part in enumerate((part for part in turn.parts if isinstance(part, Call)), 1):
            call = EarlierCall(unit_id(run.key, index, call_part(number)), part.name, part.call_id)
            calls.append(call)
            if call.call_id is not None:
                by_id.setdefault(call.call_id, []).append(call)
    return _Answer(tuple(calls), by_id, before) if calls else before


def _answered(turns: list[Turn], before: _Answer | None) -> tuple[EarlierCall, ...]:
    """The earlier calls that the results of a run may answer: of one id the nearest, and those of the nearest answer for results that name none.

    The order depends on the file alone, since the first that fits is taken.
    """
    results = [part for turn in turns for part in turn.parts if isinstance(part, Result)]
    if before is None or not results:
        return ()
    wanted = dict.fromkeys(part.call_id for part in results if part.call_id is not None)
    guesses = any(part.call_id is None for part in results)
    found: list[EarlierCall] = []
    answer: _Answer | None = before
    for _ in range(_MOST_BACK):
        if answer is None or not wanted:
            break
        # The shorter of the two is gone through, so that many results do not meet many answers.
        fewer, others = (wanted, answer.by_id) if len(wanted) < len(answer.by_id) else (answer.by_id, wanted)
        for name in [name for name in fewer if name in others]:
            found += answer.by_id[name]
            del wanted[name]
        answer = answer.before
    guessed = before.calls[:_MOST_GUESSED] if guesses or wanted else ()
    return tuple(dict.fromkeys([*guessed, *found]))


def _runs(path: Path, task: str | None, form: str | None) -> Iterator[tuple[Run, Record | None]]:
    seen: dict[str, int] = {}
    number = 0
    for line, document in _documents(path):
        for found in _within(document, line):
            number += 1
            if isinstance(found, dict) and isinstance(found.get("runs"), list):
                given = task if task is None or number == 1 else f"{task}-{number}"
                for run in _sharing(found, line, given or _key(found, path.stem, number), seen, form):
                    yield run, None
            else:
                yield _run(found, unique_key(_key(found, path.stem, number), seen), line, form)


def _run(found: JsonValue, key: str, line: int, form: str | None) -> tuple[Run, Record]:
    outer = found if isinstance(found, dict) else {}
    session, agent, model = outer.get("session_id"), outer.get("agent"), outer.get("model")
    record = record_of(found, form)
    if record is None:
        raise _refused(line)
    run = Run(
        key=key,
        task_id=key,
        session_id=clean_id(session) if isinstance(session, str) and session else key,
        messages=record.messages,
        line=line,
        agent_id=clean_id(agent) if isinstance(agent, str) and agent else None,
        model=model if isinstance(model, str) else record.model,
        form=record.form,
        failure=record.failure,
    )
    return run, record


def _sharing(document: dict[str, JsonValue], line: int, task: str, seen: dict[str, int], form: str | None) -> Iterator[Run]:
    """The runs of one task: steps go on from run to run, and a message may name one of an earlier run."""
    step = 0
    index_of_names: dict[str, list[tuple[int, str]]] = {}
    runs = document["runs"]
    assert isinstance(runs, list)
    for number, item in enumerate(runs, 1):
        agent = item.get("agent") if isinstance(item, dict) else None
        key = unique_key(clean_id(f"{task}:{agent if isinstance(agent, str) and agent else number}"), seen)
        run = replace(_run(item, key, line, form)[0], task_id=task, first_step=step, known=NamedBefore(index_of_names, number))
        yield run
        for index, turn in enumerate(run.turns(Counter())):
            step += turn.role == "assistant"
            name = turn.hints.get("id")
            if isinstance(name, str):
                index_of_names.setdefault(name, []).append((number, unit_id(key, index, first_part(turn))))


def _within(document: JsonValue, line: int) -> Iterator[JsonValue]:
    """What the document holds: itself when it is a run, else the runs in its list."""
    if isinstance(document, dict):
        yield document
    elif isinstance(document, list):
        if document and (all(map(is_message, document)) or all(stream_id(item) is not None for item in document)):
            yield document
            return
        for item in document:
            if not isinstance(item, dict | list):
                raise _refused(line)
            yield item
    else:
        raise _refused(line)


def _key(found: JsonValue, stem: str, number: int) -> str:
    if isinstance(found, dict):
        for name in _KEYS:
            value = found.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                return clean_id(str(value))
        task, trial = found.get("task_id"), found.get("trial")
        if isinstance(task, str | int) and task != "":
            return clean_id(f"{task}-{trial}" if isinstance(trial, str | int) else str(task))
    return clean_id(f"{stem}-{number}")


def unique_key(key: str, seen: dict[str, int]) -> str:
    """The key, or with ``~2``, ``~3``, … the first that no earlier run has. ``seen`` holds the number that each key has come to."""
    name, number = key, seen.get(key, 1)
    while name in seen:
        number += 1
        name = f"{key}~{number}"
    seen[name] = 1
    seen[key] = number
    return name


def _documents(path: Path) -> Iterator[tuple[int, JsonValue]]:
    """Each document with the line it begins in; events that follow each other are one list, an answer each."""
    events: list[JsonValue] = []
    began, own = 0, ""
    for line, document in _lines_or_whole(path):
        name = stream_id(document)
        if events and (name is None or begins(document) or (name and own and name != own)):
            yield began, events
            events, own = [], ""
        if name is None:
            yield line, document
            continue
        began = began if events else line
        own = own or name
        events.append(document)
        if len(events) > MAX_EVENTS:
            raise errors.ImportRefused(f"The stream that begins in line {began} has over {MAX_EVENTS} events.").at(index=began)
    if events:
        yield began, events


def _lines_or_whole(path: Path) -> Iterator[tuple[int, JsonValue]]:
    """JSON lines one by one, the data of server-sent events, or the whole file."""
    with path.open("rb") as file:
        line, first = _next_line(file, 0, MAX_DOCUMENT_BYTES)
        if first is None:
            return
        if first.removeprefix(b"\xef\xbb\xbf").startswith(_EVENT_FIELDS):
            yield from _sent_events(file, line, first)
            return
        following = _next_line(file, line, MAX_LINE_BYTES)
        if following[1] is None:
            yield line, _parsed(first, line)
            return
        try:
            document = _parsed(first, line)
        except errors.ImportRefused:
            if path.stat().st_size > MAX_DOCUMENT_BYTES:
                raise errors.ImportRefused(
                    "The document is over 200 MB.", hint="Write one run a line (JSON lines); these are read one by one."
                ) from None
            file.seek(0)
            yield line, _parsed(file.read(), line)
            return
        yield line, document
        while following[1] is not None:
            line = following[0]
            yield line, _parsed(following[1], line)
            following = _next_line(file, line, MAX_LINE_BYTES)


def _sent_events(file: BinaryIO, line: int, raw: bytes | None) -> Iterator[tuple[int, JsonValue]]:
    """The data of a file of server-sent events, each as its own document."""
    while raw is not None:
        data = raw.removeprefix(b"\xef\xbb\xbf").strip()
        if data.startswith(b"data:") and (text := data.removeprefix(b"data:").strip()) and text != b"[DONE]":
            yield line, _parsed(text, line)
        line, raw = _next_line(file, line, MAX_LINE_BYTES)


def _next_line(file: BinaryIO, line: int, limit: int) -> tuple[int, bytes | None]:
    """The next line that is not blank, with its number; None at the end."""
    while True:
        raw = file.readline(limit + 1)
        if not raw:
            return line, None
        line += 1
        if len(raw) > limit:
            raise errors.ImportRefused(f"Line {line} is over {limit // 2**20} MB.").at(index=line)
        if raw.strip():
            return line, raw


def _parsed(raw: bytes, line: int) -> JsonValue:
    try:
        return decode(raw.decode("utf-8-sig"))
    except DuplicateKey:
        raise errors.ImportRefused(f"An object in line {line} has the same key twice.").at(index=line) from None
    except (ValueError, RecursionError):
        raise errors.ImportRefused(f"Line {line} is not JSON in UTF-8.").at(index=line) from None


def _refused(line: int) -> errors.LastroError:
    return errors.ImportRefused(
        f"Line {line} holds no run of a form that is known.",
        hint=f"A run is a list of messages, or a request, an answer or an exchange of these: {', '.join(FORMS)}. Name the form with --format.",
    ).at(index=line)
