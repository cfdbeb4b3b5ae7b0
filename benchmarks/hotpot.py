"""Questions that need two passages: whether both are within 500 tokens, out of the passages of all questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from benchmarks.engines import BenchEngine
from benchmarks.measuring import Figure, OnProgress, at_least, load_average, plain
from benchmarks.quality import asked, folder_for, packed, percent, share
from graph.model.units import ContextUnit, Kind

NAME = "hotpot"
FILE = Path("hotpot100") / "questions.json"
BUDGET = 500
ASKED_FOR = 4_000
"""A budget in o200k_base with room for passages that are skipped, since they do not fit into the 500."""
TARGET = 74.0


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the units that it needs."""

    text: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pool:
    """The passages of all questions, each once, and the questions."""

    units: list[ContextUnit]
    questions: list[Question]


def pool(data: Path) -> Pool:
    """A unit's text is its title, a new line and the passage."""
    told = orjson.loads((data / FILE).read_bytes())
    texts: dict[str, str] = {}
    for each in told:
        context = each["context"]
        for title, sentences in zip(context["title"], context["sentences"], strict=True):
            texts.setdefault(title, f"{title}\n{''.join(sentences).strip()}")
    ids = {title: f"passage-{number:03d}" for number, title in enumerate(texts)}
    units = [ContextUnit(id=ids[title], kind=Kind.OBSERVATION, content=text) for title, text in texts.items()]
    questions = [Question(each["question"], frozenset(ids[title] for title in each["supporting_facts"]["title"])) for each in told]
    return Pool(units, questions)


async def measure(
    engine: BenchEngine, folder: Path, data: Path, embedders: Sequence[str], most: int | None, on_progress: OnProgress
) -> list[Figure]:
    """Every question (of the first ``most``) over the whole pool."""
    told = pool(data)
    figures = [plain(NAME, str(engine), "passages", len(told.units), "")]
    for embedder in embedders:
        async with asked(engine, folder_for(folder, embedder), embedder) as service:
            door = await service.door("hotpot")
            service.write(door, told.units, f"{embedder}: writing", on_progress)
            await service.until_embedded(f"{embedder}: embedding", on_progress)
            shares: list[float] = []
            questions = told.questions[:most]
            for place, question in enumerate(questions):
                answer = service.ask(door, question.text, ASKED_FOR)
                shares.append(share(packed(answer["units"], BUDGET), question.gold))
                on_progress(f"{embedder}: asking", place + 1, len(questions))
            door.close()
        both = percent([float(found == 1.0) for found in shares])
        figures += [
            plain(NAME, str(engine), f"{embedder}: questions", len(shares), ""),
            at_least(plain(NAME, str(engine), f"{embedder}: both passages within {BUDGET} tokens", both, "%"), TARGET),
            plain(NAME, str(engine), f"{embedder}: one of them at least", percent([float(found > 0) for found in shares]), "%"),
        ]
    return [*figures, plain(NAME, str(engine), "load average", load_average(), "")]
