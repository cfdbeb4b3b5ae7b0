"""One context for two models, beside each other (A8): what each costs, how it is ordered, and what cannot be said to one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from adapters.counting import count_request
from adapters.tokenizers import Tokenizers
from adapters.tool_definitions import Note, ToolDefinition
from adapters.tool_definitions.forms import WRITERS
from graph.model.answer import ContextAnswer, TokenCount
from graph.model.base import Model
from graph.model.errors import CommandRefused


class ToolsView(Model):
    """The caller's tools in a model's form."""

    tokens: int = Field(description="What they add to the request, in the model's tokens.")
    notes: list[Note] = Field(description="What was adapted or cannot be said.")
    names: dict[str, str] = Field(description="Names that the API does not take: how each is called there, and the name that was given.")


class ModelView(Model):
    """One of the two models."""

    model: str
    api: str
    tokens: TokenCount
    order: list[str] = Field(description="Ids of the units by position in the payload.")
    left_out: int = Field(description="Units that were seen and are not told, for the budget or another reason.")
    notes: list[str]
    tools: ToolsView | None = None


class MigrationCheck(Model):
    """What changes from ``before`` to ``after``."""

    before: ModelView
    after: ModelView
    tokens_ratio: float = Field(description="Tokens after by tokens before.")
    only_before: list[str] = Field(description="Units that only the first model is told.")
    only_after: list[str]
    moved: int = Field(description="Units told to both whose position among these is another.")


def compare(before: ContextAnswer, after: ContextAnswer, tools: Sequence[ToolDefinition] = ()) -> MigrationCheck:
    """Put two answers to one query beside each other.

    Raises:
        CommandRefused: one of them has no payload.
        InvalidField, TooLarge: a tool has a schema that is none, or too large.
    """
    first, second = _view(before, tools), _view(after, tools)
    told_first, told_second = set(first.order), set(second.order)
    common = [unit_id for unit_id in first.order if unit_id in told_second]
    common_after = [unit_id for unit_id in second.order if unit_id in told_first]
    return MigrationCheck(
        before=first,
        after=second,
        tokens_ratio=round(second.tokens.value / max(first.tokens.value, 1), 3),
        only_before=[unit_id for unit_id in first.order if unit_id not in told_second],
        only_after=[unit_id for unit_id in second.order if unit_id not in told_first],
        moved=sum(one != other for one, other in zip(common, common_after, strict=True)),
    )


def _view(answer: ContextAnswer, tools: Sequence[ToolDefinition]) -> ModelView:
    rendered = answer.rendered
    if rendered is None:
        raise CommandRefused("The answer has no payload to compare.", hint="Name two models that an adapter knows.")
    return ModelView(
        model=rendered.model,
        api=rendered.api,
        tokens=answer.consumption.tokens,
        order=rendered.order,
        left_out=sum(answer.receipt.left_out_counts.values()),
        notes=rendered.notes,
        tools=_tools(rendered.model, rendered.api, rendered.payload, tools) if tools else None,
    )


def _tools(model: str, api: str, payload: dict[str, Any], tools: Sequence[ToolDefinition]) -> ToolsView:
    write = WRITERS.get(api)
    if write is None:
        raise CommandRefused("Tools cannot be told to an API of another package.", hint="Leave out --tools for this model.")
    said = write(tools)
    native: list[dict[str, Any]] = [{"functionDeclarations": said.tools}] if api == "google.generate_content" else said.tools
    tokenizers = Tokenizers()
    requests: tuple[dict[str, Any], ...] = ({**payload, "tools": native}, payload)
    with_tools, without = (count_request(model, request, tokenizers).tokens.value for request in requests)
    return ToolsView(tokens=with_tools - without, notes=said.notes, names=said.names)
