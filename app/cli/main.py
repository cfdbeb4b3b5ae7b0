"""`lastro`: the command and its subcommands."""

from __future__ import annotations

import logging
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from app.cli import (
    attachments,
    audit,
    conformance,
    context,
    demo,
    doctor,
    erasure,
    importing,
    keys,
    ledger,
    migration_check,
    output,
    permissions,
    policy,
    quotas,
    reembed,
    serve,
    tokens,
    units,
)
from graph.model.errors import DeadlineExceeded, EngineFailure, InvalidInput, LastroError, Unavailable

app = typer.Typer(
    name="lastro",
    help="Keeps what agents know in one graph, and gives each the part that helps, may be seen and fits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command(epilog=demo.EXAMPLES)(demo.demo)
app.command(epilog=serve.EXAMPLES)(serve.serve)
app.command("import", epilog=importing.EXAMPLES)(importing.import_)
app.add_typer(units.app, name="units")
app.add_typer(attachments.app, name="attachments")
app.command(epilog=context.EXAMPLES)(context.context)
app.add_typer(keys.app, name="keys")
app.add_typer(policy.app, name="policy")
app.add_typer(policy.teams, name="team")
app.add_typer(quotas.app, name="quotas")
app.command(epilog=quotas.USAGE_EXAMPLES)(quotas.usage)
app.command(epilog=ledger.EXAMPLES)(ledger.ledger)
app.command(epilog=audit.EXAMPLES)(audit.audit)
app.command(epilog=erasure.EXAMPLES)(erasure.erase)
app.add_typer(erasure.app, name="retention")
app.command(epilog=reembed.EXAMPLES)(reembed.reembed)
app.command(epilog=doctor.EXAMPLES)(doctor.doctor)
app.command(epilog=tokens.EXAMPLES)(tokens.tokens)
app.command("migrate-check", epilog=migration_check.EXAMPLES)(migration_check.migrate_check)
app.command(epilog=conformance.EXAMPLES)(conformance.conformance)
permissions.declare(app)


@app.callback(invoke_without_command=True)
def lastro(
    version_asked: Annotated[bool, typer.Option("--version", help="Say which version this is.", is_eager=True)] = False,
) -> None:
    """Keeps what agents know in one graph, and gives each the part that helps, may be seen and fits."""
    if version_asked:
        output.out.print(f"lastro {version('lastro')}", markup=False)
        raise typer.Exit


def run() -> None:
    """Entry point: runs the command and turns domain errors into messages and exit codes (1 refused, 2 usage, 3 unavailable)."""
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    try:
        app()
    except LastroError as error:
        output.print_error(error, as_json="--json" in sys.argv)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        output.err.print("stopped")
        sys.exit(130)


def exit_code(error: LastroError) -> int:
    """2 for input that cannot be accepted, 3 when trying later can help, 1 otherwise."""
    if isinstance(error, InvalidInput):
        return output.EXIT_USAGE
    later = isinstance(error, Unavailable | EngineFailure | DeadlineExceeded)
    return output.EXIT_UNAVAILABLE if later else output.EXIT_REFUSED
