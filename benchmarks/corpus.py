"""Made-up units to search in: topics with words and a project's name of their own, texts that mix these with what everybody says, and questions.

How often words occur follows from it: of 100,000 units about 50 hold a topic's own words, some thousands a component's, nearly all the
common ones. ``made_up`` will not do for search: there every text is made of the same words.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from benchmarks.made_up import WHEN, WORDS
from graph.model.units import ContextUnit, EdgeType, Kind, Metadata, Relation, Tier, Tool

SEED = 20_261_130
TOPICS = 2_000
RUN_UNITS = 1_000
"""Units of one session and task."""
STAY_UNITS = 12
"""Units of a run that follow each other about one topic."""
HOT_UNITS = 200
"""The newest of a session are hot, the others warm, as the background job would leave them; it has nothing to do while times are taken."""
OWN_WORDS = 6
NAMED_SHARE = 0.3
"""Units of a topic that mention its project by name."""
COMMON_WORDS = 30
TOPIC_WORDS = 22
COMPONENTS = (  # noqa: SIM905 (a text reads better than a list of its words)
    "scheduler gateway database cache broker balancer proxy replica index queue dashboard pipeline compiler scanner certificate firewall "
    "router storage backup cluster ledger archive catalogue registry exporter importer renderer mailer calendar sensor"
).split()
SYMPTOMS = (  # noqa: SIM905 (as above)
    "timeouts crashes leaks deadlocks duplicates corruption throttling overload drift rejections restarts retries spikes gaps conflicts "
    "delays truncation starvation flapping saturation mismatches regressions rollbacks alerts evictions stalls"
).split()
PLACES = (  # noqa: SIM905 (as above)
    "lisbon oslo nairobi lima osaka dublin quito hanoi tunis bergen porto ghent riga turin leeds perth davao accra cusco izmir"
).split()
STARTS = ("b", "br", "c", "d", "dr", "f", "g", "gl", "k", "l", "m", "n", "p", "pl", "r", "s", "st", "t", "tr", "v", "z")
MIDDLES = ("a", "e", "i", "o", "u", "ai", "ou")
ENDS = ("ra", "len", "to", "mi", "sa", "dor", "ve", "nix", "pu", "ka")
CYCLE = (Kind.OBSERVATION, Kind.DECISION, Kind.TOOL_RESULT, Kind.OBSERVATION, Kind.PROGRESS_NOTE)


@dataclass(frozen=True, slots=True)
class Topic:
    """What some units are about."""

    number: int
    component: str
    symptom: str
    place: str
    own: tuple[str, ...]
    name: str
    """A project's; two words that begin with capitals."""

    @property
    def sentence(self) -> str:
        """What its units mean, said once: the embedding of it is the middle of theirs."""
        return f"{self.name}: {self.symptom} of the {self.component} in {self.place}, seen in {' and '.join(self.own[:2])}."

    def question(self, chance: random.Random) -> str:
        """As somebody asks who knows some of it."""
        asked = chance.choice(
            (
                "Why did the {component} in {place} have {symptom} after {own} was changed?",
                "What did we decide about {own} and the {symptom} of the {component}?",
                "Who looked at {own} when {symptom} hit the {component} of {name}?",
            )
        )
        return asked.format(component=self.component, place=self.place, symptom=self.symptom, own=chance.choice(self.own), name=self.name)


def topics(number: int = TOPICS, seed: int = SEED) -> list[Topic]:
    """The same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 (made-up data)
    words = _made_up_words(number * OWN_WORDS, chance)
    names = _made_up_words(number, chance)
    return [
        Topic(
            place,
            chance.choice(COMPONENTS),
            chance.choice(SYMPTOMS),
            chance.choice(PLACES),
            tuple(words[place * OWN_WORDS : (place + 1) * OWN_WORDS]),
            f"Project {names[place].capitalize()}",
        )
        for place in range(number)
    ]


def _made_up_words(number: int, chance: random.Random) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < number:
        found["".join(chance.choice(STARTS) + chance.choice(MIDDLES) for _ in range(2)) + chance.choice(ENDS)] = None
    return list(found)


@dataclass(frozen=True, slots=True)
class Run:
    """Units of one session and task, each after what it points to, and the topic of each."""

    number: int
    units: list[ContextUnit]
    about: list[int]


def runs(
    units: int, known: Sequence[Topic], *, first: int = 0, prefix: str = "unit", length: int = RUN_UNITS, seed: int = SEED
) -> Iterator[Run]:
    """Units ``first`` to ``units`` in runs of ``length``; a run is the same whatever comes before it. ``first`` is a multiple of ``length``."""
    for start in range(first, units, length):
        yield _run(start // length, start, min(length, units - start), known, prefix, random.Random(seed + start))  # noqa: S311 (made-up data)


def unit_id(number: int, prefix: str = "unit") -> str:
    return f"{prefix}-{number:07d}"


def session_id(number: int, prefix: str = "unit") -> str:
    return f"{prefix}-session-{number:04d}"


def task_id(number: int, prefix: str = "unit") -> str:
    return f"{prefix}-task-{number:04d}"


def _run(number: int, first: int, length: int, known: Sequence[Topic], prefix: str, chance: random.Random) -> Run:
    units: list[ContextUnit] = []
    about: list[int] = []
    topic = chance.choice(known)
    for place in range(length):
        if place % STAY_UNITS == 0:
            topic = chance.choice(known)
        kind = CYCLE[place % len(CYCLE)]
        call_id = f"call-{place if kind is Kind.DECISION else place - 1}"
        units.append(
            ContextUnit(
                id=unit_id(first + place, prefix),
                kind=kind,
                content=text(topic, chance),
                metadata=Metadata(
                    timestamp=WHEN + timedelta(seconds=first + place),
                    session_id=session_id(number, prefix),
                    task_id=task_id(number, prefix),
                    task_step=place // len(CYCLE),
                    tier=Tier.HOT if place >= length - HOT_UNITS else Tier.WARM,
                    tool=Tool(name="query_metrics", call_id=call_id) if kind in {Kind.DECISION, Kind.TOOL_RESULT} else None,
                ),
                relations=_relations(kind, first, place, prefix, chance),
            )
        )
        about.append(topic.number)
    return Run(number, units, about)


def _relations(kind: Kind, first: int, place: int, prefix: str, chance: random.Random) -> list[Relation]:
    """The unit before it as its cause, and up to two others of the last fifty."""
    if place == 0:
        return []
    found = {place - 1: EdgeType.CAUSATION}
    for edge_type in (EdgeType.PROVENANCE, EdgeType.PROVENANCE if kind is Kind.TOOL_RESULT else EdgeType.CAUSATION):
        found.setdefault(chance.randint(max(place - 50, 0), place - 1), edge_type)
    return [Relation(edge_type=edge_type, target_id=unit_id(first + target, prefix)) for target, edge_type in found.items()]


def text(topic: Topic, chance: random.Random) -> str:
    """About 55 words: what everybody says, and what is said of the topic alone."""
    told = [*chance.choices(WORDS, k=chance.randint(COMMON_WORDS - 8, COMMON_WORDS + 8))]
    told += chance.choices((*topic.own, topic.component, topic.symptom, topic.place, chance.choice(COMPONENTS)), k=TOPIC_WORDS)
    chance.shuffle(told)
    said = " ".join(told).capitalize()
    return f"{said}, says {topic.name}." if chance.random() < NAMED_SHARE else f"{said}."
