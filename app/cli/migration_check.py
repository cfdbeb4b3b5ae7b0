"""`lastro migrate-check`: what moving an agent from one model to another would change."""

from __future__ import annotations

import asyncio
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.padding import Padding
from rich.text import Text

from adapters.tool_definitions import CODES, Note, ToolDefinition
from adapters.tool_definitions.forms import read_tools
from app.cli import options, output
from app.cli.access import Target, operations
from app.cli.context import COLD_DEADLINE_MS, nothing_stored, query_of, say_nothing_stored
from app.migration_check import MigrationCheck, ModelView, compare
from graph.model.answer import ContextAnswer
from graph.model.errors import CommandRefused
from graph.model.query import DEFAULT_BUDGET_TOKENS

EXAMPLES = (
    "Examples:  lastro migrate-check gpt-5.2 claude-opus-4-8 --task incident-4711 --step 12   |   "
    "lastro migrate-check gpt-5.2 gemini-3-flash --topic 'why is checkout slow?' --tools tools.json --json"
)
MOST_TOOLS_BYTES = 4 * 1024 * 1024
MOST_NOTES_SHOWN = 20


def migrate_check(
    before: Annotated[str, typer.Argument(metavar="A", help="The model that the agent has.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The model that it would get.")],
    task: Annotated[str | None, typer.Option(help="Around this task.", show_default=False)] = None,
    step: Annotated[int | None, typer.Option(help="For this step of --task.", show_default=False)] = None,
    unit: Annotated[str | None, typer.Option(help="Around this unit.", show_default=False)] = None,
    session: Annotated[str | None, typer.Option(help="Of this session.", show_default=False)] = None,
    topic: Annotated[str | None, typer.Option(help="About this.", show_default=False)] = None,
    budget: Annotated[int, typer.Option(help="Most tokens, in each model's own.")] = DEFAULT_BUDGET_TOKENS,
    tools: Annotated[
        Path | None,
        typer.Option(help="JSON list of the agent's tools, in the neutral form or any vendor's; also checked.", show_default=False),
    ] = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    tenant: options.Tenant = "local",
    agent: options.Agent = "cli",
    as_json: options.Json = False,
) -> None:
    """Ask for the same context for two models: what each costs, how it is ordered, and what cannot be said. Nothing is changed or indexed anew."""
    if task is None and unit is None and session is None and topic is None:
        raise CommandRefused(
            "One of --task, --unit, --session and --topic is needed.",
            hint="Say what the context is about, for example --task incident-4711.",
        )
    target = Target(url, key, engine, data, tenant, agent)
    definitions, unread = _tools(tools) if tools is not None else ([], [])
    asked = {"task_id": task, "step": step, "unit_id": unit, "session_id": session, "topic": topic, "budget_tokens": budget}
    # Nobody waits for this with an agent's deadline.
    asked["deadline_ms"] = COLD_DEADLINE_MS
    queries = [
        query_of({name: value for name, value in {**asked, "model": model}.items() if value is not None}) for model in (before, after)
    ]

    async def work() -> list[ContextAnswer]:
        async with operations(target) as door:
            return [await door.context(query) for query in queries]

    first, second = asyncio.run(work())
    check = compare(first, second, definitions)
    if as_json:
        output.print_json({**check.model_dump(mode="json"), "tools_not_read": [note.model_dump(mode="json") for note in unread]})
        return
    if nothing_stored(first) and nothing_stored(second):
        say_nothing_stored(target)
    else:
        _show(check)
    # What becomes of the tools does not depend on what is stored.
    for side in (check.before, check.after):
        _show_notes(side)
    for note in unread:
        _wrapped(f"{note.place}: {CODES[note.code]}", indent=0)


def _tools(path: Path) -> tuple[list[ToolDefinition], list[Note]]:
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_TOOLS_BYTES + 1)
        if len(raw) > MOST_TOOLS_BYTES:
            raise CommandRefused("The file of --tools is larger than 4 MB.", hint="Give the agent's tools and nothing else.")
        found = read_tools(orjson.loads(raw))
    except OSError:
        raise CommandRefused("The file of --tools cannot be read.", hint="Check its path.") from None
    except orjson.JSONDecodeError:
        raise CommandRefused("The file of --tools is not JSON.", hint="Give a JSON list of definitions.") from None
    return found.tools, found.notes


def _show(check: MigrationCheck) -> None:
    one, other = check.before, check.after
    rows: list[tuple[str, object, object]] = [
        ("API", one.api, other.api),
        ("tokens", output.count(one.tokens.value), output.count(other.tokens.value)),
        ("between", _bounds(one), _bounds(other)),
        ("counted", _counted(one), _counted(other)),
        ("of it framing", output.count(one.tokens.parts.framing), output.count(other.tokens.parts.framing)),
        ("units told", len(one.order), len(other.order)),
        ("units left out", one.left_out, other.left_out),
    ]
    if one.tools is not None and other.tools is not None:
        rows.append(("tools, tokens", output.count(one.tools.tokens), output.count(other.tools.tokens)))
    output.table(["", one.model, other.model], rows)
    output.out.print(
        f"\n{other.model} takes {check.tokens_ratio:g} times the tokens. Units: {check.moved} at another place, "
        f"{len(check.only_before)} no longer told, {len(check.only_after)} new.\n",
        markup=False,
    )
    if one.order or other.order:
        numbered = enumerate(zip_longest(one.order, other.order, fillvalue=""), 1)
        output.table(["place", one.model, other.model], [(place, *ids) for place, ids in numbered], right=[0])


def _bounds(side: ModelView) -> str:
    return f"{output.count(side.tokens.low)} - {output.count(side.tokens.high)}"


def _counted(side: ModelView) -> str:
    return f"{side.tokens.method}, {side.tokens.tokenizer}"


def _show_notes(side: ModelView) -> None:
    lines = list(side.notes)
    if side.tools is not None:
        lines += [f"The tool {given} is called {name}." for name, given in side.tools.names.items()]
        lines += [f"tools{note.place}: {CODES[note.code]}" for note in side.tools.notes]
    if lines:
        output.out.print(f"\n{side.model}:", style="bold", markup=False)
    for line in lines[:MOST_NOTES_SHOWN]:
        _wrapped(output.printable(line))
    if len(lines) > MOST_NOTES_SHOWN:
        output.out.print(f"  and {len(lines) - MOST_NOTES_SHOWN} more; --json has all of them.", markup=False)


def _wrapped(line: str, indent: int = 2) -> None:
    """A line of prose that keeps its indent where it goes on."""
    output.out.print(Padding(Text(line, overflow="fold"), (0, 0, 0, indent)))
