"""`lastro context`: what an agent would get."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from app.cli import options, output
from app.cli.access import Target, operations
from app.cli.answer_view import show_answer
from graph.model.answer import ContextAnswer
from graph.model.base import as_domain_error
from graph.model.errors import CommandRefused
from graph.model.query import DEFAULT_BUDGET_TOKENS, DEFAULT_DEADLINE_MS, ContextQuery, StrategyName, ToolPairs

EXAMPLES = (
    "Examples:  lastro context --task incident-4711 --step 12 --budget 600 --model gpt-5.2   |   "
    "lastro context --topic 'why is checkout slow?' --model claude-opus-4-8   |   lastro context --unit UNIT --json"
)

COLD_DEADLINE_MS = 20_000
"""An engine that was started for one question has planned and compiled nothing yet."""


def context(
    task: Annotated[str | None, typer.Option(help="Around this task.", show_default=False)] = None,
    step: Annotated[int | None, typer.Option(help="For this step of --task; later steps are left out.", show_default=False)] = None,
    unit: Annotated[str | None, typer.Option(help="Around this unit.", show_default=False)] = None,
    session: Annotated[str | None, typer.Option(help="Of this session: what is hot, then the rest.", show_default=False)] = None,
    from_session: Annotated[
        str | None,
        typer.Option(
            help="Session that it is asked from, such as the agent's own: whose tool calls --tool-pairs tells.", show_default=False
        ),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(help="About this: a question, some words, an identifier; alone or with one of the others.", show_default=False),
    ] = None,
    strategy: Annotated[StrategyName, typer.Option(help="How to look for it; the query decides by itself.")] = StrategyName.AUTO,
    budget: Annotated[int, typer.Option(help="Most tokens, in the model's own.")] = DEFAULT_BUDGET_TOKENS,
    model: Annotated[
        str | None, typer.Option(envvar="LASTRO_MODEL", help="Target model; without it no payload is made.", show_default=False)
    ] = None,
    api: Annotated[
        str | None,
        typer.Option(help="Which of the model's APIs the payload is for, such as responses; the family decides.", show_default=False),
    ] = None,
    tool_pairs: Annotated[
        ToolPairs, typer.Option(help="How tool calls of the caller's own session are told: as evidence, or in the vendor's form.")
    ] = ToolPairs.FENCED,
    stable_prefix: Annotated[
        bool,
        typer.Option("--stable-prefix", help="Units in the order of recording, so that the vendor's prompt cache hits at the next step."),
    ] = False,
    question: Annotated[str | None, typer.Option(help="Question to put after the context.", show_default=False)] = None,
    as_of: Annotated[str | None, typer.Option(help="Only what was recorded by then (RFC 3339).", show_default=False)] = None,
    history: Annotated[bool, typer.Option("--history", help="Superseded units too.")] = False,
    deadline_ms: Annotated[
        int | None,
        typer.Option(help="Most time for the answer, ms: 500 of a service, 20000 of a store that is opened cold.", show_default=False),
    ] = None,
    payload: Annotated[bool, typer.Option("--payload", help="Print the model's payload and nothing else.")] = False,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    tenant: options.Tenant = "local",
    agent: options.Agent = "cli",
    as_json: options.Json = False,
) -> None:
    """Answer a context query: the units that matter, what they cost, and why the others were left out."""
    target = Target(url, key, engine, data, tenant, agent, from_session)
    if payload and model is None:
        raise CommandRefused("--payload needs a model.", hint="Add --model, or set LASTRO_MODEL.")
    asked = {
        "task_id": task,
        "step": step,
        "unit_id": unit,
        "session_id": session,
        "topic": topic,
        "strategy": strategy,
        "budget_tokens": budget,
        "model": model,
        "api": api,
        "tool_pairs": tool_pairs,
        "stable_prefix": stable_prefix,
        "question": question,
        "as_of": as_of,
        "include_history": history,
        "deadline_ms": deadline_ms if deadline_ms is not None else (DEFAULT_DEADLINE_MS if target.remote else COLD_DEADLINE_MS),
    }
    query = query_of({name: value for name, value in asked.items() if value is not None})

    async def work() -> ContextAnswer:
        async with operations(target) as door:
            return await door.context(query)

    answer = asyncio.run(work())
    if payload and answer.rendered is not None:
        output.print_json(answer.rendered.payload)
    elif as_json:
        output.print_json(answer)
    else:
        show_answer(answer)
        if nothing_stored(answer):
            say_nothing_stored(target)


def nothing_stored(answer: ContextAnswer) -> bool:
    """Whether nothing was there to choose from, as opposed to nothing that fits."""
    return not answer.units and not answer.receipt.candidates


def say_nothing_stored(target: Target) -> None:
    """Says where was looked, which may not be where the caller meant."""
    output.err.print(f"Nothing is stored there for this caller ({target.place}). `lastro units list` shows what is.", markup=False)


def query_of(asked: dict[str, Any]) -> ContextQuery:
    """A query from options, refused with the same errors as over HTTP."""
    try:
        return ContextQuery.model_validate(asked, strict=False)
    except ValidationError as failure:
        raise as_domain_error(failure) from None
