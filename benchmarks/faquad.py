"""Portuguese questions: whether the first unit is the paragraph that they were asked about, also when typed without accents."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from benchmarks.engines import BenchEngine
from benchmarks.measuring import Figure, OnProgress, at_least, load_average, plain
from benchmarks.quality import asked, folder_for, percent
from graph.model.units import ContextUnit, Kind

NAME = "faquad"
FILE = Path("faquad") / "faquad.json"
ASKED_FOR = 4_000
"""A budget in o200k_base that any first paragraph fits into, with some behind it."""
AS_TYPED = 86.0
WITHOUT_ACCENTS = 85.0
FEW = 5


@dataclass(frozen=True, slots=True)
class Paragraphs:
    """The paragraphs, each once, and the questions with the id of theirs."""

    units: list[ContextUnit]
    questions: list[tuple[str, str]]


def paragraphs(data: Path) -> Paragraphs:
    ids: dict[str, str] = {}
    questions: list[tuple[str, str]] = []
    for article in orjson.loads((data / FILE).read_bytes())["data"]:
        for paragraph in article["paragraphs"]:
            unit_id = ids.setdefault(paragraph["context"], f"paragraph-{len(ids):03d}")
            questions += [(each["question"], unit_id) for each in paragraph["qas"]]
    return Paragraphs([ContextUnit(id=unit_id, kind=Kind.OBSERVATION, content=text) for text, unit_id in ids.items()], questions)


def without_accents(text: str) -> str:
    """As somebody types who leaves them out."""
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))


async def measure(
    engine: BenchEngine, folder: Path, data: Path, embedders: Sequence[str], most: int | None, on_progress: OnProgress
) -> list[Figure]:
    """Every question (of the first ``most``), as it stands and without accents."""
    told = paragraphs(data)
    questions = told.questions[:most]
    figures = [plain(NAME, str(engine), "paragraphs", len(told.units), ""), plain(NAME, str(engine), "questions", len(questions), "")]
    for embedder in embedders:
        async with asked(engine, folder_for(folder, embedder), embedder) as service:
            door = await service.door("faquad")
            service.write(door, told.units, f"{embedder}: writing", on_progress)
            await service.until_embedded(f"{embedder}: embedding", on_progress)
            for typed, change, target in (("as typed", str, AS_TYPED), ("without accents", without_accents, WITHOUT_ACCENTS)):
                first: list[float] = []
                few: list[float] = []
                for place, (question, wanted) in enumerate(questions):
                    ids = [unit["id"] for unit in service.ask(door, change(question), ASKED_FOR)["units"]]
                    first.append(float(ids[:1] == [wanted]))
                    few.append(float(wanted in ids[:FEW]))
                    on_progress(f"{embedder}: asking {typed}", place + 1, len(questions))
                figures += [
                    at_least(plain(NAME, str(engine), f"{embedder}: right paragraph first, {typed}", percent(first), "%"), target),
                    plain(NAME, str(engine), f"{embedder}: among the first {FEW}, {typed}", percent(few), "%"),
                ]
            door.close()
    return [*figures, plain(NAME, str(engine), "load average", load_average(), "")]
