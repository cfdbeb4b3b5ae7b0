"""The runs of a file in OpenAI's chat form: one JSON document or JSON lines, read one line at a time.

A run is a list of messages, or an object with ``messages``, ``traj`` or ``trajectory``, or a recorded exchange (``request.messages`` and
``response.choices``). A document is a run, a list of runs, or an object with ``runs`` that share its ``task_id``; each of these may name its
``agent``, ``model`` and ``session_id``, and its steps follow those of the run before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from pydantic import JsonValue

from adapters.importers.chat_messages import Message, is_id
from adapters.importers.json_literals import DuplicateKey, decode
from graph.model import errors

MAX_DOCUMENT_BYTES: Final = 200 * 2**20
MAX_LINE_BYTES: Final = 64 * 2**20
MAX_KEY_CHARACTERS: Final = 100
"""Of a run's key, so that ids made of it stay ids."""

MESSAGE_LISTS: Final = ("messages", "traj", "trajectory")
_KEYS: Final = ("id", "run_id", "conversation_id")


@dataclass(frozen=True, slots=True)
class Run:
    """One run as it stands in the file. ``key`` is unique in the file and begins the ids of its units."""

    key: str
    task_id: str
    session_id: str
    messages: list[JsonValue]
    line: int
    """Where it begins, from 1."""
    agent_id: str | None = None
    model: str | None = None
    first_step: int = 0
    """Steps that other runs of the same task took before."""
    known: Mapping[str, str] = field(default_factory=dict[str, str])
    """Unit ids by the ids of messages in earlier runs of the same task."""


def read_runs(path: Path, task_id: str | None = None) -> Iterator[Run]:
    """The runs of the file, in order. ``task_id`` replaces the file's own; with ``-1``, ``-2``, … when there are several.

    Raises ImportRefused, naming the line, for what is no such file.
    """
    task = None if task_id is None else clean_id(task_id)
    runs = _runs(path, task)
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
    visible = "".join(character if character.isprintable() and not character.isspace() else "_" for character in text)
    return f"{visible[: MAX_KEY_CHARACTERS - 13]}~{digest}"


def unit_id(key: str, index: int, part: str) -> str:
    """The id of a unit: run, position of its message (from 0), and what it is. Ids sort as the messages stand."""
    return f"{key}:{index:04d}:{part}" if index < 10_000 else f"{key}:z{index:08d}:{part}"  # noqa: PLR2004 - four digits


def first_part(message: Message) -> str:
    """What the first unit of a message is called in its id."""
    match message.get("role"):
        case "assistant":
            own_text = message.get("kind") not in {None, "decision"} and bool(message.get("content"))
            return "text" if own_text or not (message.get("tool_calls") or message.get("function_call")) else "call"
        case "tool" | "function":
            return "result"
        case "user":
            return "user"
        case _:
            return "system"


def _runs(path: Path, task: str | None) -> Iterator[Run]:
    seen: set[str] = set()
    number = 0
    for line, document in _documents(path):
        for found in _within(document, line):
            number += 1
            if isinstance(found, dict) and isinstance(found.get("runs"), list):
                given = task if task is None or number == 1 else f"{task}-{number}"
                yield from _sharing(found, line, given or _key(found, path.stem, number), seen)
            else:
                yield _run(found, _unique(_key(found, path.stem, number), seen), line)


def _run(found: JsonValue, key: str, line: int) -> Run:
    outer = found if isinstance(found, dict) else {}
    session, agent, model = outer.get("session_id"), outer.get("agent"), outer.get("model")
    request = outer.get("request")
    if model is None and isinstance(request, dict):
        model = request.get("model")
    return Run(
        key=key,
        task_id=key,
        session_id=clean_id(session) if isinstance(session, str) and session else key,
        messages=_messages(found, line),
        line=line,
        agent_id=clean_id(agent) if isinstance(agent, str) and agent else None,
        model=model if isinstance(model, str) else None,
    )


def _sharing(document: dict[str, JsonValue], line: int, task: str, seen: set[str]) -> Iterator[Run]:
    """The runs of one task: steps go on from run to run, and a message may name one of an earlier run."""
    step, known = 0, dict[str, str]()
    runs = document["runs"]
    assert isinstance(runs, list)
    for number, item in enumerate(runs, 1):
        agent = item.get("agent") if isinstance(item, dict) else None
        key = _unique(clean_id(f"{task}:{agent if isinstance(agent, str) and agent else number}"), seen)
        run = replace(_run(item, key, line), task_id=task, first_step=step, known=dict(known))
        yield run
        for index, message in enumerate(run.messages):
            if isinstance(message, dict):
                step += message.get("role") == "assistant"
                if isinstance(message.get("id"), str):
                    known[str(message["id"])] = unit_id(key, index, first_part(message))


def _within(document: JsonValue, line: int) -> Iterator[JsonValue]:
    """What the document holds: itself when it is a run, else the runs in its list."""
    is_messages = isinstance(document, list) and bool(document) and all(isinstance(item, dict) and "role" in item for item in document)
    if isinstance(document, dict) or is_messages:
        yield document
    elif isinstance(document, list):
        for item in document:
            if not isinstance(item, dict | list):
                raise _refused(line)
            yield item
    else:
        raise _refused(line)


def _messages(found: JsonValue, line: int) -> list[JsonValue]:
    if isinstance(found, list):
        return found
    assert isinstance(found, dict)
    for name in MESSAGE_LISTS:
        messages = found.get(name)
        if isinstance(messages, list):
            return messages
    request, response = found.get("request"), found.get("response")
    asked = request.get("messages") if isinstance(request, dict) else None
    if not isinstance(asked, list):
        raise _refused(line)
    answer = response if isinstance(response, dict) else {}
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    said = first.get("message") if isinstance(first, dict) else None
    return [*asked, {"created": answer.get("created"), **said}] if isinstance(said, dict) else asked


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


def _unique(key: str, seen: set[str]) -> str:
    """The key, or with ``~2``, ``~3``, … the first that no earlier run has."""
    name, number = key, 1
    while name in seen:
        number += 1
        name = f"{key}~{number}"
    seen.add(name)
    return name


def _documents(path: Path) -> Iterator[tuple[int, JsonValue]]:
    """Each document with the line it begins in: JSON lines one by one, or the whole file."""
    with path.open("rb") as file:
        line, first = _next_line(file, 0, MAX_DOCUMENT_BYTES)
        if first is None:
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
        f"Line {line} holds no run.", hint="A run is a list of messages, or an object with messages, traj, trajectory or request."
    ).at(index=line)
