"""Import: a file becomes batches, each stored whole; what was acknowledged is noted, so that a broken import goes on where it was."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import orjson

from adapters.importers.formats import AUTO, UNITS, check_format, detect
from adapters.importers.spoken import Original
from adapters.importers.transcript_files import read_runs
from adapters.importers.transcript_units import convert
from adapters.importers.units_ndjson import read_units
from app.client import fits_header
from app.operations import Operations
from graph.model.errors import AttachmentTooLarge, ImportRefused, UnitConflict
from graph.model.units import ContextUnit

BATCH_UNITS = 500
BATCH_BYTES = 4 * 1024 * 1024
"""A batch is closed early at this size of content, well under the body limit of the service."""
HEAD_BYTES = 64 * 1024
TASKS_NAMED = 100
MODEL_LEFT_OUT = "a model whose name no header can hold was not recorded"
TOO_LARGE = "a file was larger than the attachment store takes and was not kept"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an import is. ``done`` and ``total`` are bytes of the file for units, runs for transcripts (total 0: not known yet)."""

    done: int
    total: int
    units: int


@dataclass(slots=True)
class ImportReport:
    """What an import did."""

    format: str
    """The one that was named, or that the file showed; of several, each run's own, joined by a comma."""
    written: int = 0
    unchanged: int = 0
    batches: int = 0
    runs: int = 0
    originals: int = 0
    """Files within it that went to the attachment store."""
    resumed_at: int = 0
    notes: dict[str, int] = field(default_factory=dict[str, int])
    """What was changed to make a text acceptable, and how often."""
    task_ids: list[str] = field(default_factory=list[str])
    """The first tasks that the units belong to."""
    formats: dict[str, int] = field(default_factory=dict[str, int])
    """How many runs each format had; empty for units."""

    def add(self, piece: Piece) -> None:
        """Note a run and what had to be changed in it."""
        if piece.task_id is not None:
            self.runs += 1
        if piece.format is not None:
            self.formats[piece.format] = self.formats.get(piece.format, 0) + 1
            self.format = ", ".join(sorted(self.formats))
        for unit in piece.units:
            task_id = unit.metadata.task_id
            if task_id is not None and len(self.task_ids) < TASKS_NAMED and task_id not in self.task_ids:
                self.task_ids.append(task_id)
        for note, times in piece.notes.items():
            self.notes[note] = self.notes.get(note, 0) + times


@dataclass(frozen=True, slots=True)
class Piece:
    """Units that go together, and the position behind them: a byte offset, or a number of runs."""

    units: Sequence[ContextUnit]
    position: int
    task_id: str | None = None
    model: str | None = None
    notes: Mapping[str, int] = field(default_factory=dict[str, int])
    format: str | None = None
    originals: Sequence[Original] = ()
    """The bytes behind the units' attachments."""


class Checkpoint:
    """How far a file went into a store, kept beside the store's data until the import is complete."""

    def __init__(self, folder: Path, source: Path, target: str) -> None:
        with source.open("rb") as file:
            head = file.read(HEAD_BYTES)
        name = hashlib.sha256(f"{source.resolve()}\0{target}\0".encode() + head).hexdigest()[:32]
        self._path = folder / "imports" / f"{name}.json"

    def read(self) -> int:
        """The position that was reached; 0 when there is none."""
        try:
            return int(orjson.loads(self._path.read_bytes())["position"])
        except (FileNotFoundError, orjson.JSONDecodeError, KeyError, TypeError, ValueError):
            return 0

    def write(self, position: int) -> None:
        """Note a position; whole or not at all."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self._path.with_suffix(".draft")
        draft.write_bytes(orjson.dumps({"position": position}))
        draft.replace(self._path)

    def clear(self) -> None:
        """The import is complete."""
        self._path.unlink(missing_ok=True)


async def import_file(
    operations: Operations,
    source: Path,
    *,
    format: str = AUTO,
    session_id: str | None = None,
    task_id: str | None = None,
    checkpoint: Checkpoint | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> ImportReport:
    """Read a file and store what it holds, in batches. Repeating it changes nothing.

    Raises:
        ImportRefused and other InvalidInput: names the line or run; what was stored before it stays.
        Unavailable: the store went away; the same call goes on from the checkpoint.
    """
    if not source.is_file():
        raise ImportRefused("There is no such file.", hint="Check the path.")
    if format != AUTO:
        check_format(format)
    chosen = detect(source) if format == AUTO else format
    form = None if format == AUTO else format
    report = ImportReport(chosen)
    report.resumed_at = start = checkpoint.read() if checkpoint is not None else 0
    total = source.stat().st_size if chosen == UNITS else 0
    batch = _Batch(operations, report)
    position = start
    for piece in _unit_pieces(source, start) if chosen == UNITS else _transcript_pieces(source, start, session_id, task_id, form):
        if batch.units and not batch.takes(piece):
            await batch.store()
            if checkpoint is not None:
                checkpoint.write(position)
            on_progress(Progress(position, total, report.written + report.unchanged))
        for part in _parts(piece.units):
            await batch.add(part, piece.model)
        batch.originals.extend(piece.originals)
        position = piece.position
        report.add(piece)
    await batch.store()
    on_progress(Progress(position, total, report.written + report.unchanged))
    if checkpoint is not None:
        checkpoint.clear()
    return report


class _Batch:
    """Units on their way: those of one model, up to the limits of a batch."""

    def __init__(self, operations: Operations, report: ImportReport) -> None:
        self._operations = operations
        self._report = report
        self._model: str | None = None
        self._ids: set[str] = set()
        self.units: list[ContextUnit] = []
        self.originals: list[Original] = []

    def takes(self, piece: Piece) -> bool:
        """Whether the piece can go along with what is there already. A line that the file repeats goes into a later batch."""
        if piece.model != self._model or any(unit.id in self._ids for unit in piece.units):
            return False
        return (
            len(self.units) + len(piece.units) <= BATCH_UNITS
            and _size(self.units, self.originals) + _size(piece.units, piece.originals) <= BATCH_BYTES
        )

    async def add(self, units: Sequence[ContextUnit], model: str | None) -> None:
        """Take units, storing first what would make the batch too large."""
        if self.units and len(self.units) + len(units) > BATCH_UNITS:
            await self.store()
        self.units.extend(units)
        self._ids.update(unit.id for unit in units)
        self._model = model

    async def store(self) -> None:
        """Store what is there, whole, and then the files within it: a broken import begins again before them."""
        if not self.units:
            return
        result = await self._operations.write(self.units, model=self._model)
        self._report.written += result.written
        self._report.unchanged += result.unchanged
        self._report.batches += 1
        self.units = []
        self._ids = set()
        for original in {each.attachment.sha256: each for each in self.originals}.values():
            try:
                await self._operations.put_attachment(original.attachment.sha256, original.attachment.media_type, _whole(original.data))
                self._report.originals += 1
            except AttachmentTooLarge:
                self._report.notes[TOO_LARGE] = self._report.notes.get(TOO_LARGE, 0) + 1
        self.originals = []


async def _whole(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _parts(units: Sequence[ContextUnit]) -> Iterator[list[ContextUnit]]:
    """A run longer than a batch in several parts; its units stand in an order in which targets come first."""
    for start in range(0, len(units), BATCH_UNITS):
        yield list(units[start : start + BATCH_UNITS])


def _size(batch: Sequence[ContextUnit], originals: Sequence[Original]) -> int:
    return sum(len(unit.content) for unit in batch) + sum(len(each.data) for each in originals)


def _transcript_pieces(source: Path, skip: int, session_id: str | None, task_id: str | None, form: str | None) -> Iterator[Piece]:
    """Runs of a transcript; the position is the number of runs before. Each run has its own form when ``form`` is left out."""
    for number, run in enumerate(read_runs(source, task_id, form), start=1):
        if number > skip:
            converted = convert(run, session_id=session_id)
            model = None if run.model is None else run.model.strip() or None
            if model is not None and not fits_header(model):
                # A service is told the model in a header; a store on this machine takes no more than it, so that both hold the same.
                converted.notes[MODEL_LEFT_OUT] += 1
                model = None
            yield Piece(converted.units, number, run.task_id, model, converted.notes, run.form, converted.originals)


def _unit_pieces(source: Path, start: int) -> Iterator[Piece]:
    """Lines of units in an order in which a target in the file comes before what points to it.

    Only units that point ahead are held back; the position stays before the first of them, so that a resumed import reads it again.
    """
    lines = _lines_of_ids(source)
    held: dict[str, tuple[int, ContextUnit, set[str]]] = {}
    waiting: dict[str, list[str]] = {}
    sent: set[str] = set()
    offset = start
    for after, line, unit in read_units(source, start):
        before, offset = offset, after
        ahead = {
            relation.target_id
            for relation in unit.relations
            if lines.get(relation.target_id, 0) > line or (relation.target_id in held and relation.target_id not in sent)
        }
        if unit.id in held and ahead:
            if unit != held[unit.id][1]:
                raise UnitConflict().at(index=line, id=unit.id)
            continue
        if ahead:
            held[unit.id] = (before, unit, ahead)
            for target in ahead:
                waiting.setdefault(target, []).append(unit.id)
            continue
        ready = [unit]
        for released in ready:
            sent.add(released.id)
            for dependent in waiting.pop(released.id, ()):
                _, held_unit, targets = held[dependent]
                targets.discard(released.id)
                if not targets:
                    del held[dependent]
                    ready.append(held_unit)
        yield Piece(ready, min((position for position, _, _ in held.values()), default=after))
    if held:
        # Only a cycle keeps units waiting; the store refuses it and says which unit.
        yield Piece([unit for _, unit, _ in held.values()], offset)


def _lines_of_ids(source: Path) -> dict[str, int]:
    """Line numbers by unit id, read loosely: what is wrong with a line is said when it is its turn."""
    found: dict[str, int] = {}
    with source.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                document = orjson.loads(raw.removeprefix(b"\xef\xbb\xbf"))
            except orjson.JSONDecodeError:
                continue
            unit_id = cast("dict[str, object]", document).get("id") if isinstance(document, dict) else None
            if isinstance(unit_id, str):
                found[unit_id] = number
    return found
