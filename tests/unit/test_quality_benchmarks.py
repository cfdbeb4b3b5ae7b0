"""What the benchmarks of quality and search compute: packing, recall, the reading of data sets, made-up knowledge, waves and marks."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from benchmarks import faquad, hotpot, locomo, updates
from benchmarks.at_once import Got, figures, is_marked
from benchmarks.corpus import runs, topics
from benchmarks.quality import packed, percent, share, tokens
from benchmarks.replay import Recording
from graph.model.batch import check_batch
from graph.model.content import check_content
from graph.model.units import EdgeType, Kind, Tier


def answered(*texts: str) -> list[dict[str, str]]:
    return [{"id": f"u{number}", "content": text} for number, text in enumerate(texts)]


def test_a_pack_skips_what_does_not_fit_and_goes_on() -> None:
    units = answered("one two three", "one two three four five six", "one two")
    assert tokens("one two three") == pytest.approx(3.9)
    assert packed(units, 6.5) == ["u0", "u2"]
    assert packed(units, 3.8) == ["u2"]
    assert packed([], 100) == []


def test_shares_are_of_what_was_wanted() -> None:
    assert share(["a", "b", "c"], ["b", "d"]) == 0.5
    assert percent([1.0, 0.0, 0.5]) == 50.0
    assert percent([]) == 0.0


def test_a_conversation_becomes_units_and_questions_with_evidence(tmp_path: Path) -> None:
    turns = [
        {"speaker": "Ana", "dia_id": "D1:1", "text": "Look at this!", "blip_caption": "a photo of a boat"},
        {"speaker": "Rui", "dia_id": "D1:2", "text": "Nice."},
    ]
    later = [{"speaker": "Ana", "dia_id": "D2:1", "text": "It was sold."}]
    said = {
        "speaker_a": "Ana",
        "session_2_date_time": "1:05 am on 9 June, 2023",
        "session_2": later,
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": turns,
    }
    asked: list[dict[str, Any]] = [
        {"question": "What did Ana show?", "evidence": ["D1:1; D2:1"], "category": 1},
        {"question": "Which evidence is there?", "evidence": ["D1:2", "D7:7"], "category": 4},
        {"question": "What was never said?", "evidence": ["D1:1"], "category": 5},
        {"question": "What has no evidence?", "evidence": [], "category": 3},
    ]
    file = tmp_path / "conv09.json"
    file.write_bytes(orjson.dumps({"conversation": said, "qa": asked}))
    told = locomo.conversation(file)
    assert told.name == "conv09"
    assert [unit.id for unit in told.units] == ["D1:1", "D1:2", "D2:1"]
    assert told.units[0].content == "[1:56 pm on 8 May, 2023] Ana: Look at this! (a photo of a boat)"
    metadata = told.units[1].metadata
    assert (metadata.actor, metadata.session_id, metadata.timestamp) == ("Rui", "session-1", datetime(2023, 5, 8, 13, 56, 1, tzinfo=UTC))
    assert [(question.text, question.evidence) for question in told.questions] == [
        ("What did Ana show?", {"D1:1", "D2:1"}),
        ("Which evidence is there?", {"D1:2"}),
    ]


def test_recall_is_a_mean_over_questions() -> None:
    recall = locomo.Recall()
    recall.add(answered("word", "word"), frozenset({"u0", "elsewhere"}))
    recall.add(answered("word"), frozenset({"u0"}))
    assert recall.evidence(1_000) == 75.0
    assert recall.whole(1_000) == 50.0


def test_passages_are_pooled_once(tmp_path: Path) -> None:
    context = {"title": ["Otter", "Stoat"], "sentences": [["Otters swim.", " They eat fish."], ["Stoats run."]]}
    asked = [{"question": f"Question {number}?", "supporting_facts": {"title": ["Stoat"]}, "context": context} for number in range(2)]
    (tmp_path / "hotpot100").mkdir()
    (tmp_path / hotpot.FILE).write_bytes(orjson.dumps(asked))
    told = hotpot.pool(tmp_path)
    assert [unit.content for unit in told.units] == ["Otter\nOtters swim. They eat fish.", "Stoat\nStoats run."]
    assert [question.gold for question in told.questions] == [{told.units[1].id}] * 2


def test_questions_know_their_paragraph(tmp_path: Path) -> None:
    paragraph = {"context": "A avaliação é anual.", "qas": [{"question": "Quando é a avaliação?"}]}
    (tmp_path / "faquad").mkdir()
    (tmp_path / faquad.FILE).write_bytes(orjson.dumps({"data": [{"paragraphs": [paragraph, paragraph]}]}))
    told = faquad.paragraphs(tmp_path)
    assert [unit.content for unit in told.units] == ["A avaliação é anual."]
    assert told.questions == [("Quando é a avaliação?", told.units[0].id)] * 2
    assert faquad.without_accents("Não, à avaliação só!") == "Nao, a avaliacao so!"


def test_made_up_facts_change_one_to_five_times_and_never_say_a_value_twice() -> None:
    world = updates.made_up(facts=60, distractors=50)
    assert {len(fact.statements) - 1 for fact in world.facts} == {1, 2, 3, 4, 5}
    statements = [statement for fact in world.facts for statement in fact.statements]
    assert len(set(statements)) == len(statements)
    units = {unit.id: (number, unit) for number, batch in enumerate(world.rounds) for unit in batch}
    for fact in world.facts:
        for version, unit_id in enumerate(fact.ids):
            number, unit = units[unit_id]
            assert number == version
            assert [(edge.edge_type, edge.target_id) for edge in unit.relations] == (
                [(EdgeType.SUPERSESSION, fact.ids[version - 1])] if version else []
            )
    assert not {unit.content for _, unit in units.values() if unit.id.startswith("talk")} & set(statements)
    for batch in world.rounds:
        check_batch(batch)
    assert world == updates.made_up(facts=60, distractors=50)
    assert world != updates.made_up(facts=60, distractors=50, seed=1)


@pytest.mark.parametrize(
    ("ids", "right"),
    [(["new", "talk"], True), (["talk"], False), (["new", "old"], False), ([], False)],
)
def test_an_answer_is_right_with_the_current_value_and_no_stale_one(ids: list[str], right: bool) -> None:
    found = updates.Right()
    answer: dict[str, Any] = {"units": [{"id": unit_id, "content": unit_id} for unit_id in ids]}
    found.add("now", answer, ["new"], ["old"], {"another tenant's"})
    assert found.answers["now"] == [float(right)]


def test_an_answer_with_another_tenants_text_is_wrong() -> None:
    found = updates.Right()
    found.add("now", {"units": [{"id": "new", "content": "another tenant's"}]}, ["new"], [], {"another tenant's"})
    assert found.answers["now"] == [0.0]
    assert found.with_foreign == 1


def test_the_corpus_is_made_of_batches_that_the_service_takes() -> None:
    known = topics(50)
    made = list(runs(400, known, length=100))
    for run in made:
        check_batch(run.units)
        assert len(run.about) == len(run.units)
        for unit in run.units:
            check_content(unit.content, 10_000)
            if unit.kind is Kind.TOOL_RESULT:
                assert [edge.edge_type for edge in unit.relations].count(EdgeType.CAUSATION) == 1
    assert made[0].units[-1].metadata.tier is Tier.HOT
    assert list(runs(400, known, first=200, length=100)) == made[2:]
    chance = random.Random(1)  # noqa: S311 (made-up data)
    assert any(word in known[3].question(chance) for word in known[3].own)


def test_what_begins_while_something_runs_is_of_the_same_wave() -> None:
    recording = Recording()
    recording.began("a", ("text", {}))
    recording.began("b", ("first vectors", {}))
    recording.ended()
    recording.began("b", ("more vectors", {}))
    recording.ended()
    recording.ended()
    recording.began("a", ("neighbours", {}))
    recording.ended()
    named = [[[name for name, _ in chain] for chain in wave] for wave in recording.waves]
    assert named == [[["text"], ["first vectors", "more vectors"]], [["neighbours"]]]


def receipt(*, fallback: bool = False, outcome: str = "answered", note: str = "", total: float = 100.0) -> dict[str, Any]:
    return {"fallback": fallback, "attempts": [{"outcome": outcome}], "notes": [note] if note else [], "timings_ms": {"total": total}}


def test_an_answer_is_marked_by_its_receipt() -> None:
    assert not is_marked(receipt(note="No model was named."))
    assert is_marked(receipt(fallback=True))
    assert is_marked(receipt(outcome="timed_out"))
    assert is_marked(receipt(note="The search by meaning was not done in time: only words were searched for."))


def test_late_answers_without_a_mark_and_empty_ones_miss_the_target() -> None:
    def got(took_s: float, told: dict[str, Any], *units: str) -> Got:
        return Got(200, took_s, orjson.dumps({"units": list(units), "receipt": told}))

    fine = [got(0.4, receipt(), "u"), got(0.9, receipt(fallback=True, total=510.0), "u"), Got(504, 0.5, b"{}")]
    late = [got(0.6, receipt(total=480.0), "u"), got(0.6, receipt(total=590.0), "u")]
    aimed = [figure for figure in figures("search", "embedded", fine) if figure.met is not None]
    assert [figure.value for figure in aimed] == [0, 0, 0]
    assert all(figure.met for figure in aimed)
    missed = [figure for figure in figures("search", "embedded", [*fine, *late, got(0.1, receipt())]) if figure.met is False]
    assert [figure.value for figure in missed] == [2, 1, 1]
