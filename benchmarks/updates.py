"""Knowledge that changes: made-up facts with one to five updates, each a unit that supersedes the one before, among distractors.

Asked for a fact, the answer must hold its current value and none that it had before; ``as_of`` a moment in between, the value of that moment;
with ``include_history``, all of them. A second tenant has the same facts with other values, of which no answer may hold one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.engines import BenchEngine
from benchmarks.measuring import Figure, OnProgress, at_least, load_average, plain
from benchmarks.quality import Asked, asked, folder_for, percent
from benchmarks.service import Door
from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, Relation

NAME = "updates"
FACTS = 100
DISTRACTORS = 400
MOST_CHANGES = 5
BUDGET = 500
"""Tokens (o200k_base) of an answer: some twenty of these units."""
WITH_HISTORY = 1_000
TARGET = 100.0
BETWEEN_S = 0.05
WHEN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SEED = 20_261_130

SERVICES = (  # noqa: SIM905 (a text reads better than a list of its words)
    "Harbor Lantern Quarry Meadow Sextant Bramble Cinder Juniper Keystone Lagoon Marigold Nimbus Orchard Pinion Quartz Rudder Saffron Thistle "
    "Umbra Vesper"
).split()
GIVEN = "Ana Bruno Carla Davi Elisa Fabio Gloria Heitor Iris Joel Karin Luana Mateus Nadia Otto Paula Rui Sonia Tiago Vera".split()  # noqa: SIM905
FAMILY = "Abreu Bastos Castro Duarte Esteves Franco Guerra Horta Isidro Jardim Leite Moura Nunes Ortiz Prado Ramos Serra Teles".split()  # noqa: SIM905
PLACES = "Aveiro Braga Coimbra Dover Evora Faro Ghent Hamar Izmir Jena Kiruna Lagos Malmo Nantes Oviedo Parma Riga Turku Vigo".split()  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Attribute:
    """Something that can be known of a service."""

    question: str
    statement: str
    talk: str
    """What is said about it without saying its value."""


ATTRIBUTES = (
    Attribute("Who is on call for {s}?", "{v} is on call for {s}.", "The rota of who is on call for {s} was discussed in the stand-up."),
    Attribute("Which port does {s} listen on?", "{s} listens on port {v}.", "A scan asked which port {s} listens on, and was refused."),
    Attribute(
        "In which data centre does {s} run?", "{s} runs in the data centre of {v}.", "Moving {s} to another data centre takes a weekend."
    ),
    Attribute("Who owns the budget of {s}?", "The budget of {s} is owned by {v}.", "The budget of {s} was looked at with finance."),
    Attribute(
        "What is the rate limit of {s}?",
        "The rate limit of {s} is {v} requests a second.",
        "Two clients complained about the rate limit of {s}.",
    ),
    Attribute("Which version of {s} is deployed?", "Version {v} of {s} is deployed.", "The deploy of {s} failed once and was repeated."),
    Attribute(
        "How many days are the logs of {s} kept?", "Logs of {s} are kept for {v} days.", "The logs of {s} fill a disk in about a month."
    ),
)
NEWS = ("{t}", "Since the last review: {t}", "Changed on request of the owner. {t}", "Please note: {t}")


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact and its versions, the first one first; version n is written in round n."""

    id: str
    question: str
    statements: tuple[str, ...]

    @property
    def ids(self) -> list[str]:
        return [f"{self.id}-v{version}" for version in range(len(self.statements))]

    def at(self, number: int) -> int:
        """The version that is current after a round."""
        return min(number, len(self.statements) - 1)


@dataclass(frozen=True, slots=True)
class World:
    """Facts, and the units of each round."""

    facts: list[Fact]
    rounds: list[list[ContextUnit]]


def made_up(facts: int = FACTS, distractors: int = DISTRACTORS, seed: int = SEED) -> World:
    """The same for the same seed. No two versions of any facts have the same value."""
    chance = random.Random(seed)  # noqa: S311 (made-up data)
    pairs = [(service, attribute) for service in SERVICES for attribute in ATTRIBUTES]
    chosen = chance.sample(pairs, facts)
    used: set[str] = set()
    told: list[Fact] = []
    for number, (service, attribute) in enumerate(chosen):
        statements = [
            chance.choice(NEWS[:1] if version == 0 else NEWS[1:]).format(
                t=attribute.statement.format(s=service, v=_value(attribute, chance, used))
            )
            for version in range(1 + chance.randint(1, MOST_CHANGES))
        ]
        told.append(Fact(f"fact-{number:03d}", attribute.question.format(s=service), tuple(statements)))
    rounds = [[_unit(fact, version) for fact in told if version < len(fact.statements)] for version in range(1 + MOST_CHANGES)]
    rounds[0] += [_distractor(number, pairs, chance) for number in range(distractors)]
    for batch in rounds:
        chance.shuffle(batch)
    return World(told, rounds)


def _value(attribute: Attribute, chance: random.Random, used: set[str]) -> str:
    while True:
        if attribute in {ATTRIBUTES[0], ATTRIBUTES[3]}:
            value = f"{chance.choice(GIVEN)} {chance.choice(FAMILY)}"
        elif attribute is ATTRIBUTES[2]:
            value = f"{chance.choice(PLACES)} {chance.randint(1, 30)}"
        elif attribute is ATTRIBUTES[5]:
            value = f"{chance.randint(1, 9)}.{chance.randint(0, 40)}.{chance.randint(0, 40)}"
        else:
            value = str(chance.randint(1_000, 9_999))
        if value not in used:
            used.add(value)
            return value


def _unit(fact: Fact, version: int) -> ContextUnit:
    before = [Relation(edge_type=EdgeType.SUPERSESSION, target_id=fact.ids[version - 1])] if version else []
    return ContextUnit(
        id=fact.ids[version],
        kind=Kind.CORRECTION if version else Kind.OBSERVATION,
        content=fact.statements[version],
        metadata=Metadata(timestamp=WHEN + timedelta(days=version)),
        relations=before,
    )


def _distractor(number: int, pairs: Sequence[tuple[str, Attribute]], chance: random.Random) -> ContextUnit:
    service, attribute = chance.choice(pairs)
    said = f"{attribute.talk.format(s=service)} It was the note with number {number}."
    return ContextUnit(
        id=f"talk-{number:03d}",
        kind=Kind.OBSERVATION,
        content=said,
        metadata=Metadata(timestamp=WHEN + timedelta(minutes=number)),
    )


@dataclass(slots=True)
class Right:
    """Which answers were as they must be, by what was asked, and how the others were not."""

    answers: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    without_current: int = 0
    with_stale: int = 0
    with_foreign: int = 0

    def add(self, what: str, answer: dict[str, Any], wanted: Collection[str], unwanted: Collection[str], foreign: Collection[str]) -> None:
        """``wanted`` and ``unwanted`` are ids, ``foreign`` are the texts of the other tenant."""
        ids = {unit["id"] for unit in answer["units"]}
        lacking, stale = not ids.issuperset(wanted), not ids.isdisjoint(unwanted)
        crossed = not {unit["content"] for unit in answer["units"]}.isdisjoint(foreign)
        self.answers.setdefault(what, []).append(float(not (lacking or stale or crossed)))
        self.without_current += lacking
        self.with_stale += stale
        self.with_foreign += crossed


NOW = "the current value and no stale one"
IN_BETWEEN = "as_of between two changes: the value of then alone"
HISTORY = "include_history: every value"


async def measure(engine: BenchEngine, folder: Path, embedders: Sequence[str], most: int | None, on_progress: OnProgress) -> list[Figure]:
    """Every fact (of the first ``most``): now, as of each moment between two rounds before its last change, and with its history."""
    world, beside = made_up(), made_up(seed=SEED + 1)
    foreign = {statement for fact in beside.facts for statement in fact.statements}
    foreign -= {statement for fact in world.facts for statement in fact.statements}
    facts = world.facts[:most]
    figures = [
        plain(NAME, str(engine), "facts", len(facts), ""),
        plain(NAME, str(engine), "changes", sum(len(fact.statements) - 1 for fact in facts), ""),
        plain(NAME, str(engine), "units in the tenant", sum(map(len, world.rounds)), ""),
    ]
    for embedder in embedders:
        async with asked(engine, folder_for(folder, embedder), embedder) as service:
            door, other = await service.door("updates"), await service.door("updates-beside")
            moments: list[datetime] = []
            for number, (batch, batch_beside) in enumerate(zip(world.rounds, beside.rounds, strict=True)):
                service.write(door, batch, f"{embedder}: writing round {number}", on_progress)
                service.write(other, batch_beside, f"{embedder}: writing round {number} beside", on_progress)
                moments.append(datetime.now(UTC))
                await asyncio.sleep(BETWEEN_S)
            await service.until_embedded(f"{embedder}: embedding", on_progress)
            right = Right()
            for place, fact in enumerate(facts):
                _ask(service, door, fact, moments, foreign, right)
                on_progress(f"{embedder}: asking", place + 1, len(facts))
            door.close()
            other.close()
        figures += [
            at_least(plain(NAME, str(engine), f"{embedder}: {what}", percent(shares), "%"), TARGET)
            for what, shares in right.answers.items()
        ]
        figures += [
            plain(NAME, str(engine), f"{embedder}: answers without what was asked for", right.without_current, ""),
            plain(NAME, str(engine), f"{embedder}: answers with a stale value", right.with_stale, ""),
            plain(NAME, str(engine), f"{embedder}: answers with the other tenant's", right.with_foreign, ""),
        ]
    return [*figures, plain(NAME, str(engine), "load average", load_average(), "")]


def _ask(service: Asked, door: Door, fact: Fact, moments: Sequence[datetime], foreign: Collection[str], right: Right) -> None:
    ids = fact.ids
    right.add(NOW, service.ask(door, fact.question, BUDGET), ids[-1:], ids[:-1], foreign)
    for number, moment in enumerate(moments):
        version = fact.at(number)
        if version == len(ids) - 1:
            break
        answer = service.ask(door, fact.question, BUDGET, as_of=moment.isoformat())
        right.add(IN_BETWEEN, answer, [ids[version]], [*ids[:version], *ids[version + 1 :]], foreign)
    right.add(HISTORY, service.ask(door, fact.question, WITH_HISTORY, include_history=True), ids, [], foreign)
