"""Profiles as data: what a model's window, attention, roles and tokenizer are, each number with where it comes from.

A family is one TOML file. Built-in ones lie in ``adapters/profiles/``; another package brings its own and loads it with ``load_family``.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from graph.model.base import Model

SHARED = ("places", "pairs", "cache", "refuses")
"""What a family's file may say once for all of its profiles."""

Confidence = Literal["measured", "vendor", "secondary", "judgement"]
"""How far a number may be trusted: measured and published with its data; the vendor's own words; told by others; nobody's but ours."""

Role = Literal["developer", "system", "user"]
"""Who says policy and constraints. ``user`` is for chat templates that know no system turn."""


class Window(Model):
    """Tokens a model takes (``nominal``) and tokens up to which it still uses what it was given (``effective``)."""

    nominal: Annotated[int, Field(gt=0)]
    effective: Annotated[int, Field(gt=0)]
    confidence: Confidence
    source: str


class Attention(Model):
    """How attention is shared between the two ends of the context.

    ``head`` and ``tail`` are weights that sum to 1. ``amplitude`` is the relative loss of accuracy from the best place to the worst, 0 to 1.
    """

    head: Annotated[float, Field(gt=0, lt=1)]
    tail: Annotated[float, Field(gt=0, lt=1)]
    amplitude: Annotated[float, Field(ge=0, le=1)]
    instructions_at_both_ends: bool = False
    confidence: Confidence
    source: str


class TokenizerRule(Model):
    """How this model's tokens are counted: those of ``encoding`` times ``factor``.

    ``content_factor`` turns the o200k_base tokens kept with a unit into tokens of ``encoding``, rather too many than too few.
    ``error_one`` and ``error_many`` are the p95 relative errors on one document and on the sum of twenty; 0 for the model's own tokenizer.
    ``ctok`` is the version to ask of the optional package of that name, ``ctok_error`` the relative error assumed of it.
    """

    encoding: str
    factor: Annotated[float, Field(gt=0)] = 1.0
    content_factor: Annotated[float, Field(gt=0)] = 1.0
    error_one: Annotated[float, Field(ge=0, lt=1)] = 0.0
    error_many: Annotated[float, Field(ge=0, lt=1)] = 0.0
    estimate: bool = Field(
        default=False, description="Whether the factor was measured for no model of this profile, so that counts are estimates."
    )
    ctok: str | None = None
    ctok_error: Annotated[float, Field(ge=0, lt=1)] = 0.0
    count_as: str | None = Field(
        default=None,
        description="Model whose rule in `adapters/counting` counts what is rendered, nearer than `factor`, which then serves before that.",
    )
    confidence: Confidence
    source: str

    @property
    def told(self) -> str:
        """The tokenizer in words: the encoding, weighted or times its factor."""
        if self.count_as is not None:
            return f"{self.encoding}, weighted"
        return self.encoding if self.factor == 1 else f"{self.encoding} x {self.factor:g}"

    def error(self, units: int) -> float:
        """Relative p95 error for a context of so many units: from ``error_one`` at 1 in a straight line to ``error_many`` at 20 (a judgement)."""
        share = min(max(units - 1, 0) / 19, 1.0)
        return self.error_one + (self.error_many - self.error_one) * share


class Framing(Model):
    """Tokens the vendor adds around the texts: once a request, for each message, for each name, for a system prompt.

    ``roles`` says whether the name of a message's role counts beside that; ``uncertain`` is by how many tokens the sum of these may be off.
    """

    request: int = 0
    message: int = 0
    roles: bool = False
    name: int = 0
    system: int = 0
    uncertain: int = 0
    confidence: Confidence
    source: str


class Places(Model):
    """Where what stands in a request, for this vendor.

    ``untrusted`` are the roles to which the vendor gives no authority, the one that evidence is put into first. ``alternating`` says that
    turns of the same role may not follow one another, so that they are said as one.
    """

    untrusted: list[Literal["user", "tool"]] = Field(default_factory=lambda: ["user"], min_length=1)
    alternating: bool = False
    confidence: Confidence
    source: str


class PairRules(Model):
    """How tool calls and their results are told in the vendor's own form, and what of them it refuses.

    ``name_pattern`` is what a tool's whole name must match, ``name_most`` and ``id_most`` are lengths in characters. ``reasoning`` says
    whether a turn with a call must carry ``reasoning_content``; ``signature`` is what stands in for the signature of a thought that the
    vendor did not sign. ``result_names`` is what the vendor puts before a result, with ``{name}`` for the tool's. ``tokens`` is what a call and
    its result cost beside all these texts, ``uncertain`` by how much that may be off.
    """

    name_pattern: str
    name_most: Annotated[int, Field(ge=16)]
    id_most: Annotated[int, Field(ge=32)]
    reasoning: bool = False
    signature: str | None = None
    needs_definitions: bool = Field(default=False, description="Whether a request with calls must define the tools that they call.")
    result_names: str | None = None
    tokens: Annotated[int, Field(ge=0)]
    uncertain: Annotated[int, Field(ge=0)]
    confidence: Confidence
    source: str


class CacheRules(Model):
    """How the vendor keeps the beginning of a request, so that the next one with the same bytes costs less.

    ``marks``: ``automatic`` (nothing is said), ``key`` (a name that leads requests to the same cache) or ``blocks`` (blocks say how far).
    ``least_tokens`` is the shortest beginning that is kept.
    """

    marks: Literal["none", "automatic", "key", "blocks"]
    least_tokens: Annotated[int, Field(ge=0)] = 0
    confidence: Confidence
    source: str


_UNKNOWN_PLACES = Places(confidence="judgement", source="the one place that every vendor has")
_NO_CACHE = CacheRules(marks="none", confidence="judgement", source="nothing is known of this vendor's cache")


class Profile(Model):
    """Everything an adapter needs to know of one model. What a family says for all of its models need not be said again."""

    name: str = Field(description="For people and for `lastro doctor`.")
    patterns: list[str] = Field(default_factory=list[str], description="Regular expressions of bare model ids, the whole id.")
    instruction_role: Role = "system"
    window: Window
    attention: Attention
    tokenizer: TokenizerRule
    framing: Framing
    places: Places = _UNKNOWN_PLACES
    pairs: PairRules | None = Field(default=None, description="None: calls and results are always told as evidence.")
    cache: CacheRules = _NO_CACHE
    refuses: list[str] = Field(default_factory=list[str], description="What a caller may not add to the payload; told with each answer.")

    @property
    def window_tokens(self) -> int:
        """The most tokens a request may have; a budget above it cannot be met."""
        return self.window.nominal


class Api(Model):
    """One of the APIs that a family's models are asked through."""

    api: str
    builder: str = Field(description="module:name of a callable that takes (profile, toolbox) and returns an Adapter.")
    prefix: str | None = Field(default=None, description="What callers write before a model id, with a slash, to ask for this API.")
    only: list[str] = Field(default_factory=list[str], description="Regular expressions of bare ids of models that have this API alone.")
    framing: Framing | None = Field(default=None, description="In place of the profile's, where this API frames texts otherwise.")
    confidence: Confidence = "judgement"
    source: str = ""


class Match(Model):
    """The profile found for a model id, and the API that it is asked through; ``known`` is false when only the family was recognised."""

    profile: Profile
    known: bool
    api: Api


class Family(Model):
    """One model family: who builds its adapters, which ids it recognises and the profiles of its models, most specific first."""

    family: str
    api: str = Field(description="The API that is used unless the caller or the model says otherwise.")
    builder: str = Field(description="module:name of a callable that takes (profile, toolbox) and returns an Adapter.")
    recognise: str = Field(description="Regular expression of any bare model id of the family; ids without a profile get `default`.")
    strip: str | None = Field(default=None, description="Regular expression of what providers put before the id.")
    prefix: str | None = Field(
        default=None, description="The family is meant only by this word and a slash before an id, which may then be any and hold slashes."
    )
    apis: list[Api] = Field(default_factory=list[Api], description="Other APIs of the same models.")
    profiles: list[Profile]
    default: Profile

    @model_validator(mode="before")
    @classmethod
    def _shared(cls, data: Any) -> Any:
        """What a family's file says of places, pairs and cache is every profile's that says nothing else of it."""
        if not isinstance(data, dict):
            return data
        raw = cast("dict[str, Any]", data)
        shared = {name: raw[name] for name in SHARED if name in raw}
        if not shared:
            return raw
        rest = {name: value for name, value in raw.items() if name not in SHARED}
        told = {name: rest[name] for name in ("profiles", "default") if name in rest}
        if isinstance(told.get("profiles"), list):
            rest["profiles"] = [shared | each if isinstance(each, dict) else each for each in told["profiles"]]
        if isinstance(told.get("default"), dict):
            rest["default"] = shared | told["default"]
        return rest

    @property
    def main_api(self) -> Api:
        """The family's own choice."""
        return Api(api=self.api, builder=self.builder)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What callers may write before an id of this family that no vendor knows."""
        words = [self.prefix, *(each.prefix for each in self.apis)]
        return tuple(f"{word}/" for word in words if word is not None)

    def api_named(self, name: str) -> Api | None:
        """The API of that name, or of which that is the end after a dot."""
        wanted = name.strip().lower()
        return next((each for each in (self.main_api, *self.apis) if f".{each.api}".lower().endswith(f".{wanted}")), None)

    def match(self, model: str) -> Match | None:
        """The profile for a model id as callers write it, case ignored, provider prefixes allowed; None for another family's."""
        asked = model.strip().lower()
        if self.prefix is not None:
            before, _, bare = asked.partition("/")
            if before != self.prefix or not bare:
                return None
        else:
            before, _, bare = asked.rpartition("/")
        if self.strip is not None:
            bare = _compiled(self.strip).sub("", bare, count=1)
        if _compiled(self.recognise).fullmatch(bare) is None:
            return None
        words = before.split("/")
        chosen = next((each for each in self.apis if each.prefix in words or _any(each.only, bare)), self.main_api)
        for profile in self.profiles:
            if _any(profile.patterns, bare):
                return Match(profile=profile, known=True, api=chosen)
        return Match(profile=self.default, known=False, api=chosen)


def _any(patterns: list[str], bare: str) -> bool:
    return any(_compiled(pattern).fullmatch(bare) for pattern in patterns)


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def load_family(resource: Traversable) -> Family:
    """A family from its TOML file; raises ValueError (TOML or validation) that says what is wrong with it."""
    return Family.model_validate(tomllib.loads(resource.read_text("utf-8")))


def built_in_families() -> list[Family]:
    """The families this project ships, by file name."""
    folder = files("adapters") / "profiles"
    return [load_family(entry) for entry in sorted(folder.iterdir(), key=lambda entry: entry.name) if entry.name.endswith(".toml")]
