"""`lastro units`: look at what is stored."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.text import Text

from app.cli import options, output
from app.cli.access import Target, operations
from graph.model.answer import Lineage
from graph.model.units import ContextUnit, UnitPage

app = typer.Typer(
    no_args_is_help=True,
    help="List and read units, and see what came before and after one.",
    epilog="Examples:  lastro units list --task incident-4711   |   lastro units show UNIT   |   lastro units lineage UNIT --direction before",
)


@app.command("list", epilog="Examples:  lastro units list --session s1 --limit 20")
def list_(
    session: Annotated[str | None, typer.Option(help="Only this session.", show_default=False)] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Units in a page.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="`next` of the page before.", show_default=False)] = None,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    tenant: options.Tenant = "local",
    agent: options.Agent = "cli",
    as_json: options.Json = False,
) -> None:
    """List units, newest first."""
    target = Target(url, key, engine, data, tenant, agent)

    async def work() -> UnitPage:
        async with operations(target) as door:
            return await door.list_units(session_id=session, task_id=task, limit=limit, cursor=cursor)

    page = asyncio.run(work())
    if as_json:
        output.print_json(page)
        return
    output.table(
        ["id", "kind", "step", "agent", "content"],
        [(unit.id, unit.kind, _step(unit), unit.metadata.agent_id or "", unit.content) for unit in page.units],
        right=(2,),
    )
    if not page.units:
        output.err.print(f"Nothing is stored there for this caller ({target.place}).", markup=False)
    if page.next is not None:
        output.err.print(f"There may be more: --cursor {page.next}", markup=False, soft_wrap=True)


@app.command(epilog="Examples:  lastro units show UNIT --json")
def show(
    unit_id: Annotated[str, typer.Argument(help="Id of the unit.")],
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    tenant: options.Tenant = "local",
    agent: options.Agent = "cli",
    as_json: options.Json = False,
) -> None:
    """Show one unit with its edges."""

    async def work() -> ContextUnit:
        async with operations(Target(url, key, engine, data, tenant, agent)) as door:
            return await door.read(unit_id)

    unit = asyncio.run(work())
    if as_json:
        output.print_json(unit)
        return
    metadata = unit.metadata
    facts = [
        ("kind", unit.kind),
        ("trust", unit.trust),
        ("status", metadata.epistemic_status),
        ("when", metadata.timestamp),
        ("agent", metadata.agent_id),
        ("actor", metadata.actor),
        ("session", metadata.session_id),
        ("task", metadata.task_id),
        ("step", metadata.task_step),
        ("tool", metadata.tool.name if metadata.tool is not None else None),
    ]
    output.out.print(Text(unit.id, style="bold"))
    for name, value in facts:
        if value is not None:
            output.out.print(Text(f"  {name:8} {output.printable(str(value))}"))
    for relation in unit.relations:
        output.out.print(Text(f"  {relation.edge_type} → {relation.target_id}"))
    for line in unit.content.splitlines():
        output.out.print(Text("  │ " + output.printable(line)))


@app.command(epilog="Examples:  lastro units lineage UNIT --direction before --depth 5")
def lineage(
    unit_id: Annotated[str, typer.Argument(help="Id of the unit.")],
    direction: Annotated[str, typer.Option(help="before, after or both.")] = "both",
    depth: Annotated[int, typer.Option(min=1, max=10, help="Edges to follow.")] = 3,
    url: options.Url = None,
    key: options.Key = None,
    engine: options.Engine = None,
    data: options.Data = None,
    tenant: options.Tenant = "local",
    agent: options.Agent = "cli",
    as_json: options.Json = False,
) -> None:
    """Show what a unit came from and what came from it."""

    async def work() -> Lineage:
        async with operations(Target(url, key, engine, data, tenant, agent)) as door:
            return await door.lineage(unit_id, direction=direction, depth=depth)

    found = asyncio.run(work())
    if as_json:
        output.print_json(found)
        return
    output.table(["from", "edge", "to"], [(edge.source_id, edge.edge_type, edge.target_id) for edge in found.relations])
    output.table(["id", "kind", "content"], [(unit.id, unit.kind, unit.content) for unit in found.units])
    if found.truncated:
        output.err.print("There is more than the bounds allow; ask for a smaller depth or from another unit.")


def _step(unit: ContextUnit) -> str:
    return "" if unit.metadata.task_step is None else str(unit.metadata.task_step)
