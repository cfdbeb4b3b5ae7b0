"""The numbers of counting, as data: one TOML file a vendor, each set of numbers with where it comes from."""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import Field

from adapters.profile import Confidence
from graph.model.base import Model
from graph.model.errors import UnknownModel

Share = Annotated[float, Field(ge=0, lt=1)]


Feature = Literal[
    "tokens",
    "digits",
    "numbers",
    "punctuation",
    "marks_together",
    "capitals",
    "inner_capitals",
    "beyond_ascii",
    "middle_words",
    "long_words",
    "joined",
    "spaces",
    "lines",
]
"""What a text shows, counted in ``adapters.counting.sums``."""


class Service(StrEnum):
    """Where a model is asked, when the same request costs another number there."""

    DEVELOPER = "developer"
    """The vendor's own endpoint."""
    VERTEX = "vertex"
    """Gemini on Vertex AI."""


class TextRule(Model):
    """How a text is counted: the tokens of ``encoding``, or a weighted sum of those and of what else the text shows.

    ``weights`` are tokens for each thing that a text shows, the encoding's tokens first. Without them the tokens are the model's own. ``error_one`` is the p95 relative error on one short document,
    ``error_many`` on a request of ``many`` tokens and more, in a straight line over the logarithm between (a judgement).
    ``ctok`` is the version to ask of the optional package of that name, ``frame`` what it adds to each text, ``ctok_error`` its relative error.
    """

    encoding: str
    weights: dict[Feature, float] = Field(default_factory=dict[Feature, float])
    error_one: Share = 0
    error_many: Share = 0
    many: Annotated[int, Field(gt=100)] = 4_000
    ctok: str | None = None
    frame: int = 0
    ctok_error: Share = 0


class OpenAiFrame(Model):
    """Tokens around what one of OpenAI's two request forms says.

    Messages: ``request`` once, ``message`` each (its role included), ``assistant`` more for each text of the assistant's, ``name`` for a name.
    Calls: ``call`` and ``result`` beside a message's own, ``parallel`` for each call when one message holds several.
    Tools: the rendering's tokens and ``tools`` once, ``tools_alone`` once when no message of the system stands before, then for each ``tool``,
    each ``comment`` line and each tool with ``properties``. ``format`` once for a schema that the answer must have. ``slack_*`` is by how many
    tokens that may be off: once, for each tool, and for each call. ``calls_at_once`` is how many more calls after each other may cost, once.
    """

    request: int
    message: int
    assistant: int = 0
    name: int = 1
    call: int = 0
    result: int = 0
    parallel: int = 0
    tools: int = 0
    tools_alone: int = 0
    tool: int = 0
    comment: int = 0
    properties: int = 0
    comment_each_line: bool = True
    format: int = 0
    slack_tools: int = 0
    slack_tool: int = 0
    slack_call: int = 0
    calls_at_once: int = 0


class ImageRule(Model):
    """Tokens of an image. ``tiles``: ``base`` and ``tile`` for each 512-pixel square; ``patches``: 32-pixel squares, at most 1,536, times
    ``factor``; ``area``: pixels through ``divisor`` after fitting into ``edge``; ``flat``: ``base`` whatever its size, or for each ``tile`` pixels
    square when it is larger than ``edge``.
    """

    by: Literal["tiles", "patches", "area", "flat"]
    base: int = 0
    tile: int = 0
    factor: float = 1.0
    divisor: int = 750
    edge: int = 0
    error: Share = 0.1
    source: str


class ClaudeFrame(Model):
    """Tokens around what a Messages request says.

    ``request`` is the frame of one user message, ``turn`` each further change of role. ``tools_auto`` and ``tools_any`` are the hidden prompt
    with tool choice auto or none, and any; ``tools_named`` is added to the latter when a tool is named. ``tool`` is added for each tool, ``call``
    and ``result`` for each of these. ``thinking`` and ``adaptive`` are what these settings add, ``format`` what a schema of the answer adds.
    """

    request: int
    turn: int
    tools_auto: int
    tools_any: int
    tools_named: int
    tool: int
    call: int
    result: int
    thinking: int = 0
    adaptive: int = 0
    format: int = 0
    slack: int = 0
    slack_tools: int = 0


class GeminiFrame(Model):
    """Tokens around what a generateContent request says.

    ``style`` is how tools are put: as Python functions, as declarations, or only the texts in them. ``system`` is added when there are tools and a
    system instruction, ``tools`` once for tools, ``pair`` for half a call and half its result each. ``thoughts`` says whether the reasoning
    behind a thought signature is charged.
    """

    style: Literal["python", "declaration", "texts"]
    system: int = 0
    tools: int = 0
    call: int = 0
    result: int = 0
    thoughts: bool = False
    slack: int = 0
    slack_tool: int = 0
    slack_call: int = 0


class DeepSeekFrame(Model):
    """Tokens around what a DeepSeek request says; ``tools`` is the hidden prompt, ``tool`` what stands around each definition."""

    request: int
    message: int
    tools: int
    tool: int
    calls: int
    call: int
    parameter: int
    results: int
    result: int
    slack: int = 0
    slack_tools: int = 0
    slack_call: int = 0


class CountingRule(Model):
    """All numbers of one model. The first of a family whose pattern is the whole bare id is taken."""

    name: str
    patterns: list[str] = Field(default_factory=list[str])
    text: TextRule
    chat: OpenAiFrame | None = None
    responses: OpenAiFrame | None = None
    claude: ClaudeFrame | None = None
    gemini: GeminiFrame | None = None
    vertex: GeminiFrame | None = None
    deepseek: DeepSeekFrame | None = None
    image: ImageRule | None = None
    confidence: Confidence
    source: str


class CountingFamily(Model):
    """One file: which ids it recognises, the rules of its models most specific first, and of those not listed."""

    family: str
    recognise: str
    strip: str | None = None
    models: list[CountingRule]
    default: CountingRule


class FoundRule(Model):
    """The rule for a model id; ``known`` is false when only the family was recognised, or no family."""

    family: str
    rule: CountingRule
    known: bool


@lru_cache(maxsize=1)
def families() -> tuple[CountingFamily, ...]:
    """The built-in families by file name. Raises ValueError for a damaged file."""
    folder = files("adapters") / "counting"
    entries = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".toml")), key=lambda entry: entry.name)
    return tuple(_family(tomllib.loads(entry.read_text("utf-8"))) for entry in entries)


def _family(told: dict[str, Any]) -> CountingFamily:
    """A family from its file, where ``text = { like = NAME, … }`` takes what stands under ``[texts.NAME]``."""
    texts = told.pop("texts", {})
    for rule in [*told["models"], told["default"]]:
        like = rule["text"].pop("like", None)
        if like is not None:
            rule["text"] = texts[like] | rule["text"]
    return CountingFamily.model_validate(told)


@lru_cache(maxsize=64)
def text_rule(model: str) -> TextRule:
    """How texts are counted for a model. Raises UnknownModel for one of no family."""
    found = rule_for(model)
    if found is None:
        raise UnknownModel
    return found.rule.text


def rule_for(model: str) -> FoundRule | None:
    """The rule for a model id as callers write it, case ignored, provider prefixes allowed; None when no family recognises it."""
    if len(model) > 256:  # noqa: PLR2004 (no model is called that; the patterns need not look at it)
        return None
    bare = model.strip().lower().rsplit("/", 1)[-1]
    for family in families():
        name = re.sub(family.strip, "", bare, count=1) if family.strip is not None else bare
        if re.fullmatch(family.recognise, name, re.ASCII) is None:
            continue
        for rule in family.models:
            if any(re.fullmatch(pattern, name, re.ASCII) for pattern in rule.patterns):
                return FoundRule(family=family.family, rule=rule, known=True)
        return FoundRule(family=family.family, rule=family.default, known=False)
    return None
