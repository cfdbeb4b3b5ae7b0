"""What the router and an adapter say to each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from adapters.profile import Profile
from adapters.tokenizers import Tokenizers
from graph.model.answer import Rendered, TokenCount
from graph.model.candidates import Candidate
from graph.model.query import ToolPairs
from graph.model.units import ContextUnit, Kind


@dataclass(frozen=True, slots=True)
class RenderItem:
    """One chosen unit. Items of the same ``group`` (a tool call and its results) are adjacent in priority order and move as one block."""

    unit: ContextUnit
    relevance: float
    group: int


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """What to say to a model. ``items`` are in priority order, best first; ``question`` is the caller's own."""

    model: str
    items: Sequence[RenderItem]
    question: str | None
    tenant_id: str
    task_id: str | None
    step: int | None
    agent_id: str | None = None
    """Who asks. With ``session_id``: whose tool calls may be told as the model's own."""
    session_id: str | None = None
    tool_pairs: ToolPairs = ToolPairs.FENCED
    stable_prefix: bool = False
    """Whether what did not change since the step before keeps its bytes at the front, at the price of the order by attention."""


@dataclass(frozen=True, slots=True)
class RenderResult:
    """The payload, and the tokens of all of it as the vendor would count them, framing included."""

    rendered: Rendered
    tokens: TokenCount


class Adapter(Protocol):
    """Speaks to the models of one profile."""

    @property
    def profile(self) -> Profile: ...

    def base_tokens(self, question: str | None) -> int:
        """What an answer without any unit costs at most: frame, policy text, question. In this model's tokens."""
        ...

    def unit_tokens(self, candidate: Candidate, native: ContextUnit | None = None) -> int:
        """What one unit costs at most in this model's tokens, with its header and what separates it from the next. About 10 µs.

        ``native`` is the unit itself where it may become part of a native tool pair; the bound then holds for both forms.
        """
        ...

    def render(self, request: RenderRequest) -> RenderResult:
        """The payload for ``request.model``. Pure: the same request gives the same bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What the registry hands to every adapter. ``notes`` go into each answer."""

    tokenizers: Tokenizers
    fence_key: bytes
    notes: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    """What callers write before a model id to choose a family or an API, such as ``responses/``. Ours, so vendors never see it."""


Builder = Callable[[Profile, Toolbox], Adapter]
"""Makes the adapter of a profile; named by a family's ``builder``."""


def unit_body(unit: ContextUnit) -> str:
    """A unit's text as it is rendered, before escaping: its content, then the tool call and the attachments that the content does not tell.

    The writer keeps the o200k_base tokens of exactly this text with the unit.
    """
    lines = [unit.content]
    tool = unit.metadata.tool
    if tool is not None and unit.kind is not Kind.TOOL_RESULT:
        arguments = tool.arguments or {}
        if tool.name not in unit.content or not all(leaf in unit.content for leaf in _leaves(arguments)):
            lines.append(f"tool: {tool.name}({', '.join(f'{name}={_compact(value)}' for name, value in arguments.items())})")
    lines += attachment_lines(unit)
    return lines[0] if len(lines) == 1 else "\n".join(lines)


def attachment_lines(unit: ContextUnit) -> list[str]:
    """A line for each attachment that the content does not tell."""
    return [f"attachment: {item.uri} ({item.media_type})" for item in unit.attachments if item.uri not in unit.content]


def _compact(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _leaves(value: JsonValue) -> Iterator[str]:
    """The values of arguments as text, without recursion: they may be nested as deeply as JSON allows."""
    pending: list[JsonValue] = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
        else:
            yield part if isinstance(part, str) else _compact(part)
