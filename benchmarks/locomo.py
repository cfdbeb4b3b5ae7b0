"""Long conversations: how much of the evidence for a question is in its context, by budget.

A unit is one turn, one tenant holds one conversation. The definitions are those of the data's README.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from adapters.embedders.base import NO_EMBEDDER
from benchmarks.engines import BenchEngine
from benchmarks.measuring import Figure, OnProgress, Samples, at_least, load_average, plain
from benchmarks.quality import MANY_TOKENS, Asked, asked, folder_for, packed, percent, share
from benchmarks.service import Door
from graph.model.units import ContextUnit, Kind, Metadata

NAME = "locomo"
FOLDER = Path("locomo")
BUDGETS = (1_000, 2_000, 4_000, 8_000)
WITH_EMBEDDER = (88.0, 92.0, 95.5, 98.0)
WITHOUT = (85.0, 89.5, 93.5, 96.5)
NO_ANSWER = 5
"""The category of questions that the conversation does not answer; they are left out."""
TURN = re.compile(r"D\d+:\d+")
SESSION = re.compile(r"session_(\d+)")
DATE = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the turns that answer it."""

    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Its turns in their order, and what is asked about them."""

    name: str
    units: list[ContextUnit]
    questions: list[Question]


@dataclass(slots=True)
class Recall:
    """What was found of the evidence: for each budget, a share for each question."""

    by_budget: dict[int, list[float]] = field(default_factory=lambda: {budget: list[float]() for budget in BUDGETS})

    def add(self, answer: Sequence[dict[str, Any]], evidence: frozenset[str]) -> None:
        for budget, shares in self.by_budget.items():
            shares.append(share(packed(answer, budget), evidence))

    def evidence(self, budget: int) -> float:
        """Mean share of a question's evidence, percent."""
        return percent(self.by_budget[budget])

    def whole(self, budget: int) -> float:
        """Questions with all of their evidence, percent."""
        return percent([float(found == 1.0) for found in self.by_budget[budget]])

    def extend(self, other: Recall) -> None:
        for budget, shares in other.by_budget.items():
            self.by_budget[budget] += shares


def files(data: Path) -> list[Path]:
    """The conversations of the data's folder."""
    return sorted((data / FOLDER).glob("*.json"))


def conversation(file: Path) -> Conversation:
    """A conversation as units, and its questions with evidence that can be found."""
    told = orjson.loads(file.read_bytes())
    units = [unit for number in _sessions(told["conversation"]) for unit in _turns(told["conversation"], number)]
    known = {unit.id for unit in units}
    questions: list[Question] = []
    for each in told["qa"]:
        evidence = known.intersection(turn for said in each["evidence"] for turn in TURN.findall(said))
        if each["category"] != NO_ANSWER and evidence:
            questions.append(Question(each["question"], frozenset(evidence)))
    return Conversation(file.stem, units, questions)


def _sessions(told: dict[str, Any]) -> list[int]:
    return sorted(int(found[1]) for name in told if (found := SESSION.fullmatch(name)) is not None)


def _turns(told: dict[str, Any], number: int) -> list[ContextUnit]:
    said_at: str = told[f"session_{number}_date_time"]
    began = datetime.strptime(said_at, DATE).replace(tzinfo=UTC)
    return [
        ContextUnit(
            id=turn["dia_id"],
            kind=Kind.OBSERVATION,
            content=text_of(said_at, turn),
            metadata=Metadata(timestamp=began + timedelta(seconds=place), session_id=f"session-{number}", actor=turn["speaker"]),
        )
        for place, turn in enumerate(told[f"session_{number}"])
    ]


def text_of(said_at: str, turn: dict[str, Any]) -> str:
    """A turn as a unit's text: ``[date] speaker: text (caption)``."""
    caption = turn.get("blip_caption")
    return f"[{said_at}] {turn['speaker']}: {turn['text']}" + (f" ({caption})" if caption else "")


async def measure(
    engine: BenchEngine, folder: Path, data: Path, embedders: Sequence[str], most: int | None, on_progress: OnProgress
) -> list[Figure]:
    """Every question about every conversation (of the first ``most``), for each embedder on a database of its own."""
    figures: list[Figure] = []
    for embedder in embedders:
        async with asked(engine, folder_for(folder, embedder), embedder) as service:
            samples = Samples()
            by_name: dict[str, Recall] = {}
            for file in files(data)[:most]:
                told = conversation(file)
                by_name[told.name] = await _one(service, told, samples, on_progress)
        figures += _figures(str(engine), embedder, by_name, samples)
    return [*figures, plain(NAME, str(engine), "load average", load_average(), "")]


async def _one(service: Asked, told: Conversation, samples: Samples, on_progress: OnProgress) -> Recall:
    door = await service.door(told.name)
    named = f"{service.embedder}: {told.name}"
    service.write(door, told.units, f"{named}, writing", on_progress)
    await service.until_embedded(f"{named}, embedding", on_progress)
    recall = Recall()
    for place, question in enumerate(told.questions):
        recall.add(_timed(service, door, question, samples)["units"], question.evidence)
        on_progress(f"{named}, asking", place + 1, len(told.questions))
    door.close()
    return recall


def _timed(service: Asked, door: Door, question: Question, samples: Samples) -> dict[str, Any]:
    began = time.perf_counter()
    answer = service.ask(door, question.text)
    samples.add("asking", time.perf_counter() - began)
    return answer


def _figures(engine: str, embedder: str, by_name: dict[str, Recall], samples: Samples) -> list[Figure]:
    every = Recall()
    for recall in by_name.values():
        every.extend(recall)
    targets = WITHOUT if embedder == NO_EMBEDDER else WITH_EMBEDDER
    figures = [plain(NAME, engine, f"{embedder}: questions", len(every.by_budget[BUDGETS[0]]), "")]
    for budget, target in zip(BUDGETS, targets, strict=True):
        told = f"{embedder}: at {budget // 1000}k"
        figures += [
            at_least(plain(NAME, engine, f"{told}, evidence recall", every.evidence(budget), "%"), target),
            plain(NAME, engine, f"{told}, all evidence", every.whole(budget), "%"),
        ]
    for name, recall in by_name.items():
        figures += [
            plain(NAME, engine, f"{embedder}: {name} at {budget // 1000}k, evidence recall", recall.evidence(budget), "%")
            for budget in BUDGETS
        ]
    return [
        *figures,
        plain(NAME, engine, f"{embedder}: an answer of {MANY_TOKENS} tokens, p50", samples.ms("asking"), "ms"),
        plain(NAME, engine, f"{embedder}: the same, p95", samples.ms("asking", 0.95), "ms"),
    ]
