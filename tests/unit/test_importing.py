"""A file of units in any order: targets go first, each once, and a broken import goes on without loss (U8, U9)."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.importers.spoken import NOTE_MEDIA_TYPE
from app import importing
from app.client import LastroClient
from app.importing import Checkpoint, ImportReport, import_file
from app.operations import Operations
from graph.model.attachments import StoredAttachment, check_media_type
from graph.model.errors import (
    AttachmentTooLarge,
    CycleInBatch,
    DatabaseUnavailable,
    ImportRefused,
    InvalidField,
    TargetNotFound,
    UnitConflict,
)
from graph.model.units import ContextUnit, EdgeType, Kind, Relation, WriteResult

REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
"""Files are written anew by each example, into the same folder."""


class Store:
    """What a store answers to a batch: whole or not at all, targets first. Breaks at the call that ``breaks_at`` says."""

    def __init__(self) -> None:
        self.units: dict[str, ContextUnit] = {}
        self.calls: list[list[str]] = []
        self.breaks_at = -1
        self.after_storing = False
        self.originals: dict[str, bytes] = {}
        self.models: list[str | None] = []
        self.most_bytes = 1_000

    async def put_attachment(self, sha256: str, media_type: str, body: AsyncIterator[bytes]) -> StoredAttachment:
        check_media_type(media_type)
        data = b"".join([piece async for piece in body])
        if len(data) > self.most_bytes:
            raise AttachmentTooLarge
        assert any(each.sha256 == sha256 for unit in self.units.values() for each in unit.attachments), "the unit that names it comes first"
        self.originals[sha256] = data
        return StoredAttachment(sha256=sha256, media_type=media_type, bytes=len(data))

    async def write(self, units: Sequence[ContextUnit], *, model: str | None = None) -> WriteResult:
        self.models.append(model)
        ids = [unit.id for unit in units]
        breaking = len(self.calls) == self.breaks_at
        self.calls.append(ids)
        if breaking and not self.after_storing:
            raise DatabaseUnavailable
        known = self.units.keys() | set(ids)
        for unit in units:
            if any(relation.target_id not in known for relation in unit.relations):
                raise TargetNotFound
        new = [unit for unit in units if unit.id not in self.units]
        self.units.update((unit.id, unit) for unit in new)
        if breaking:
            raise DatabaseUnavailable
        return WriteResult(written=len(new), unchanged=len(ids) - len(new), ids=ids)


@st.composite
def dags(draw: st.DrawFn) -> list[ContextUnit]:
    """Units that point to units with smaller numbers, as lines in any order."""
    size = draw(st.integers(1, 14))
    units: list[ContextUnit] = []
    for number in range(size):
        targets = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set[int]()
        relations = [Relation(target_id=f"u{target}", edge_type=EdgeType.CAUSATION) for target in sorted(targets)]
        units.append(ContextUnit(id=f"u{number}", kind=Kind.OBSERVATION, content=f"Fact {number}.", relations=relations))
    return draw(st.permutations(units))


def written(folder: Path, units: Sequence[ContextUnit]) -> Path:
    file = folder / "units.ndjson"
    file.write_text("".join(unit.model_dump_json(exclude_defaults=True) + "\n" for unit in units), "utf-8")
    return file


def imported(store: Store, file: Path, checkpoint: Checkpoint | None = None) -> ImportReport:
    return asyncio.run(import_file(cast("Operations", store), file, format="units", checkpoint=checkpoint))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH_UNITS", 3)


@REUSED
@given(dags())
def test_targets_go_first_and_each_unit_once(tmp_path: Path, units: list[ContextUnit]) -> None:
    store = Store()
    report = imported(store, written(tmp_path, units))
    sent = [unit_id for call in store.calls for unit_id in call]
    assert sorted(sent) == sorted(unit.id for unit in units)
    assert report.written == len(units)
    position = {unit_id: place for place, unit_id in enumerate(sent)}
    for unit in units:
        assert all(position[relation.target_id] < position[unit.id] for relation in unit.relations)
    assert all(len(call) <= 3 for call in store.calls)


@REUSED
@given(dags(), st.booleans())
def test_a_break_at_any_batch_loses_nothing(tmp_path: Path, units: list[ContextUnit], after_storing: bool) -> None:
    """``after_storing``: the batch was stored, and only its answer was lost."""
    file = written(tmp_path, units)
    whole = Store()
    imported(whole, file)
    for number in range(len(whole.calls)):
        store = Store()
        store.breaks_at, store.after_storing = number, after_storing
        checkpoint = Checkpoint(tmp_path / "state", file, "store")
        with pytest.raises(DatabaseUnavailable):
            imported(store, file, checkpoint)
        report = imported(store, file, checkpoint)
        assert store.units.keys() == {unit.id for unit in units}
        assert report.written + len(store.calls[number]) * after_storing >= len(units) - sum(map(len, store.calls[:number]))
        assert checkpoint.read() == 0, "a complete import starts anew the next time"


def test_a_file_in_order_resumes_behind_what_was_acknowledged(tmp_path: Path) -> None:
    units = [ContextUnit(id=f"u{number}", kind=Kind.OBSERVATION, content=f"Fact {number}.") for number in range(30)]
    file = written(tmp_path, units)
    store, checkpoint = Store(), Checkpoint(tmp_path / "state", file, "store")
    store.breaks_at = 5
    with pytest.raises(DatabaseUnavailable):
        imported(store, file, checkpoint)
    report = imported(store, file, checkpoint)
    assert report.resumed_at > 0
    assert (report.written, report.unchanged) == (15, 0)
    assert [unit_id for call in store.calls[6:] for unit_id in call] == [f"u{number}" for number in range(15, 30)]


def test_a_line_that_stands_twice_is_no_trouble(tmp_path: Path) -> None:
    ahead = ContextUnit(id="b", kind=Kind.OBSERVATION, content="Later.", relations=[Relation(target_id="a", edge_type=EdgeType.DEPENDENCY)])
    first = ContextUnit(id="a", kind=Kind.OBSERVATION, content="First.")
    for lines in ([ahead, ahead, first], [ahead, first, ahead], [first, ahead, first], [first, ahead, ahead], [ahead, first, first, ahead]):
        store = Store()
        imported(store, written(tmp_path, lines))
        assert store.units.keys() == {"a", "b"}, [unit.id for unit in lines]
        assert all(len(set(call)) == len(call) for call in store.calls), "the store refuses an id twice in a batch"


def test_a_cycle_is_left_to_the_store_to_refuse(tmp_path: Path) -> None:
    ring = [
        ContextUnit(
            id=f"u{number}",
            kind=Kind.OBSERVATION,
            content="Round.",
            relations=[Relation(target_id=f"u{(number + 1) % 3}", edge_type=EdgeType.CAUSATION)],
        )
        for number in range(3)
    ]

    class Refusing(Store):
        async def write(self, units: Sequence[ContextUnit], *, model: str | None = None) -> WriteResult:  # noqa: ARG002 (as above)
            raise CycleInBatch().at(index=0, id=units[0].id)

    with pytest.raises(CycleInBatch):
        imported(Refusing(), written(tmp_path, ring))


def test_a_target_that_is_nowhere_is_the_stores_to_name(tmp_path: Path) -> None:
    lost = ContextUnit(
        id="a", kind=Kind.OBSERVATION, content="Alone.", relations=[Relation(target_id="nowhere", edge_type=EdgeType.CAUSATION)]
    )
    with pytest.raises(TargetNotFound):
        imported(Store(), written(tmp_path, [lost]))


def test_hundreds_that_point_ahead_come_in_batches(tmp_path: Path) -> None:
    """The worst order: every line points to the last."""
    last = ContextUnit(id="last", kind=Kind.OBSERVATION, content="All need it.")
    others = [
        ContextUnit(
            id=f"u{number}",
            kind=Kind.OBSERVATION,
            content="Needs it.",
            relations=[Relation(target_id="last", edge_type=EdgeType.DEPENDENCY)],
        )
        for number in range(400)
    ]
    random.Random(7).shuffle(others)  # noqa: S311 (an order, not a secret)
    store = Store()
    imported(store, written(tmp_path, [*others, last]))
    assert store.calls[0][0] == "last"
    assert len(store.units) == 401
    assert all(len(call) <= 3 for call in store.calls)


def test_an_id_with_two_contents_ahead_of_its_target_is_a_conflict(tmp_path: Path) -> None:
    ahead = [
        ContextUnit(id="b", kind=Kind.OBSERVATION, content=said, relations=[Relation(target_id="a", edge_type=EdgeType.DEPENDENCY)])
        for said in ("This.", "That.")
    ]
    with pytest.raises(UnitConflict) as refused:
        imported(Store(), written(tmp_path, [*ahead, ContextUnit(id="a", kind=Kind.OBSERVATION, content="First.")]))
    assert refused.value.where is not None
    assert (refused.value.where.index, refused.value.where.id) == (2, "b")


def exchanges(folder: Path) -> Path:
    """Exchanges of several vendors, one of them with an image."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}
    records: list[Any] = [
        {"id": "a", "request": {"messages": [{"role": "user", "content": [image]}]}, "response": {"type": "message", "content": []}},
        {"id": "b", "request": {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}, "response": {"candidates": []}},
        {"id": "c", "request": {"input": "Hi", "model": "m"}, "response": {"output": []}},
        {"id": "d", "request": {"messages": [{"role": "user", "content": "Hi"}], "model": "deepseek-chat"}, "response": {"choices": []}},
        {"id": "e", "request": {"messages": [{"role": "user", "content": "Hi"}], "model": "m"}, "response": {"choices": []}},
    ]
    file = folder / "exchanges.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return file


def test_exchanges_of_all_vendors_are_imported_once_and_resumed(tmp_path: Path) -> None:
    file, store = exchanges(tmp_path), Store()
    checkpoint = Checkpoint(tmp_path / "state", file, "store")
    store.breaks_at = 1
    with pytest.raises(DatabaseUnavailable):
        asyncio.run(import_file(cast("Operations", store), file, checkpoint=checkpoint))
    resumed = asyncio.run(import_file(cast("Operations", store), file, checkpoint=checkpoint))
    assert resumed.resumed_at > 0
    assert set(store.units) == {f"{name}:0000:user" for name in "abcde"}
    again = asyncio.run(import_file(cast("Operations", store), file))
    assert (again.written, again.unchanged, again.runs) == (0, 5, 5)
    assert again.format == "anthropic, deepseek, gemini, openai-chat, openai-responses"
    assert again.formats == dict.fromkeys(again.format.split(", "), 1)
    (image,) = store.units["a:0000:user"].attachments
    assert store.originals == {image.sha256: base64.b64decode("iVBORw==")}
    assert again.originals == 1


def test_a_file_that_the_store_does_not_take_is_left_out_and_said(tmp_path: Path) -> None:
    store = Store()
    store.most_bytes = 3
    report = asyncio.run(import_file(cast("Operations", store), exchanges(tmp_path)))
    assert (report.originals, report.notes[importing.TOO_LARGE], store.originals) == (0, 1, {})
    assert len(store.units) == 5


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("gpt-5.2", "gpt-5.2"),
        (" gpt-5.2\n", "gpt-5.2"),
        ("mod\u00e8le", None),
        ("m\ud800", None),
        ("m\nx", None),
        ("m\x00", None),
        ("m" * 513, None),
    ],
)
def test_a_model_that_no_header_can_hold_is_not_recorded_and_said(tmp_path: Path, name: str, kept: str | None) -> None:
    file, store = tmp_path / "run.json", Store()
    file.write_text(json.dumps({"model": name, "messages": [{"role": "user", "content": "Hi"}]}))
    report = asyncio.run(import_file(cast("Operations", store), file))
    assert store.models == [kept]
    assert report.notes == ({} if kept else {importing.MODEL_LEFT_OUT: 1})


@pytest.mark.parametrize("name", ["mod\u00e8le", "m\ud800", "m\nx", " m", "m" * 513])
def test_the_client_says_that_no_header_holds_a_model(name: str) -> None:
    async def write() -> None:
        async with LastroClient("http://127.0.0.1:9", "key") as client:
            await client.write([], model=name)

    with pytest.raises(InvalidField) as refused:
        asyncio.run(write())
    assert refused.value.where is not None
    assert refused.value.where.field == "model"


def test_a_file_of_an_odd_media_type_is_kept_as_bytes(tmp_path: Path) -> None:
    def image(media_type: str) -> dict[str, Any]:
        return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": "AAAA"}}

    address = {"type": "image_url", "image_url": {"url": f"data:image/{'x' * 100};base64,AAAA"}}
    inline = {"inlineData": {"mimeType": "image/\u00e9", "data": "AAAA"}}
    texts = [f"image/{'x' * 64}", f"{'x' * 65}/png", "image/\u00e9", "a/b/c; x", "image", "\ud800/x"]
    documents: list[Any] = [
        *({"messages": [{"role": "user", "content": [image(text)]}]} for text in texts),
        {"messages": [{"role": "user", "content": [address]}]},
        {"contents": [{"role": "user", "parts": [inline]}]},
    ]
    for document in documents:
        store, file = Store(), tmp_path / "run.json"
        file.write_text(json.dumps(document))
        report = asyncio.run(import_file(cast("Operations", store), file))
        assert [each.media_type for unit in store.units.values() for each in unit.attachments] == ["application/octet-stream"], document
        assert (report.notes[NOTE_MEDIA_TYPE], report.originals) == (1, 1)


def test_a_format_that_does_not_fit_or_is_not_known_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    store = Store()
    unknown = tmp_path / "x.json"
    unknown.write_text('{"rows": [1]}')
    for file, format in ((exchanges(tmp_path), "gemini"), (unknown, "auto"), (unknown, "anthropic"), (unknown, "parquet")):
        with pytest.raises(ImportRefused):
            asyncio.run(import_file(cast("Operations", store), file, format=format))
    assert not store.units
