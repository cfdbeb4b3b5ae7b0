"""Profiles as data: what a model's window, attention, roles and tokenizer are, each number with where it comes from.

A family is one TOML file. Built-in ones lie in ``adapters/profiles/``; another package brings its own and loads it with ``load_family``.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Literal

from pydantic import Field

from graph.model.base import Model

Confidence = Literal["measured", "vendor", "secondary", "judgement"]
"""How far a number may be trusted: measured and published with its data; the vendor's own words; told by others; nobody's but ours."""

Role = Literal["developer", "system"]


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
    ctok: str | None = None
    ctok_error: Annotated[float, Field(ge=0, lt=1)] = 0.0
    confidence: Confidence
    source: str

    def error(self, units: int) -> float:
        """Relative p95 error for a context of so many units: from ``error_one`` at 1 in a straight line to ``error_many`` at 20 (a judgement)."""
        share = min(max(units - 1, 0) / 19, 1.0)
        return self.error_one + (self.error_many - self.error_one) * share


class Framing(Model):
    """Tokens the vendor adds around the texts: once a request, for each message, for each name, for a system prompt.

    ``uncertain`` is by how many tokens the sum of these may be off.
    """

    request: int = 0
    message: int = 0
    name: int = 0
    system: int = 0
    uncertain: int = 0
    confidence: Confidence
    source: str


class Profile(Model):
    """Everything an adapter needs to know of one model."""

    name: str = Field(description="For people and for `lastro doctor`.")
    patterns: list[str] = Field(default_factory=list[str], description="Regular expressions of bare model ids, the whole id.")
    instruction_role: Role = "system"
    window: Window
    attention: Attention
    tokenizer: TokenizerRule
    framing: Framing

    @property
    def window_tokens(self) -> int:
        """The most tokens a request may have; a budget above it cannot be met."""
        return self.window.nominal


class Match(Model):
    """The profile found for a model id; ``known`` is false when only the family was recognised."""

    profile: Profile
    known: bool


class Family(Model):
    """One model family: who builds its adapter, which ids it recognises and the profiles of its models, most specific first."""

    family: str
    api: str
    builder: str = Field(description="module:name of a callable that takes (profile, toolbox) and returns an Adapter.")
    recognise: str = Field(description="Regular expression of any bare model id of the family; ids without a profile get `default`.")
    strip: str | None = Field(default=None, description="Regular expression of what providers put before the id.")
    profiles: list[Profile]
    default: Profile

    def match(self, model: str) -> Match | None:
        """The profile for a model id as callers write it, case ignored, provider prefixes allowed; None for another family's."""
        bare = model.strip().lower().rsplit("/", 1)[-1]
        if self.strip is not None:
            bare = _compiled(self.strip).sub("", bare, count=1)
        if _compiled(self.recognise).fullmatch(bare) is None:
            return None
        for profile in self.profiles:
            if any(_compiled(pattern).fullmatch(bare) for pattern in profile.patterns):
                return Match(profile=profile, known=True)
        return Match(profile=self.default, known=False)


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
