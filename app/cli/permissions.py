"""What each command needs: one table, so that none comes without a rule.

A command checks nothing itself. Through a service the doors judge, by these same actions; on the store itself the caller is the operator, who
can read the folder anyway. The help of each command says what stands here, and a test walks all commands and tries it with every role.
"""

from __future__ import annotations

from enum import StrEnum

import typer
from typer.main import get_command_name

from app.registry.permissions import ALLOWED, Action
from graph.model.scope import Role


class Without(StrEnum):
    """What needs no action of the registry, with what the help says of it."""

    NOTHING = "Needs no key, and touches no store of yours."
    OPERATOR = "Works on the store itself, as its operator; never through a service."


Need = tuple[Action, ...] | Without
"""Actions, more than one where an option or argument decides which; or why there is none."""

NEEDS: dict[str, Need] = {
    "demo": Without.NOTHING,
    "serve": Without.OPERATOR,
    "doctor": Without.OPERATOR,
    "conformance": Without.NOTHING,
    "reembed": Without.OPERATOR,
    "tokens": Without.NOTHING,
    "import": (Action.WRITE_UNITS,),
    "attachments put": (Action.WRITE_UNITS,),
    "attachments get": (Action.READ_UNITS,),
    "context": (Action.READ_CONTEXT,),
    "migrate-check": (Action.READ_CONTEXT,),
    "units list": (Action.READ_UNITS,),
    "units show": (Action.READ_UNITS,),
    "units lineage": (Action.READ_UNITS,),
    "keys create": (Action.MANAGE_KEYS,),
    "keys list": (Action.MANAGE_KEYS,),
    "keys rotate": (Action.MANAGE_KEYS,),
    "keys revoke": (Action.MANAGE_KEYS,),
    "policy templates": Without.NOTHING,
    "policy create": (Action.MANAGE_POLICIES,),
    "policy list": (Action.MANAGE_POLICIES,),
    "policy explain": (Action.MANAGE_POLICIES,),
    "policy revoke": (Action.MANAGE_POLICIES,),
    "team set": (Action.MANAGE_POLICIES,),
    "team list": (Action.MANAGE_POLICIES,),
    "team remove": (Action.MANAGE_POLICIES,),
    "quotas list": (Action.MANAGE_QUOTAS,),
    "quotas set": (Action.MANAGE_QUOTAS,),
    "quotas remove": (Action.MANAGE_QUOTAS,),
    "usage": (Action.READ_USAGE, Action.READ_OWN_USAGE),
    "ledger": (Action.READ_LEDGER,),
    "audit": (Action.READ_AUDIT,),
    "retention show": (Action.MANAGE_RETENTION,),
    "retention set": (Action.MANAGE_RETENTION,),
    "retention run": (Action.MANAGE_RETENTION,),
    "erase": (Action.ERASE_UNITS, Action.ERASE_TENANT),
}


def declare(app: typer.Typer, group: str = "") -> None:
    """Put into the help of every command of ``app``, at any depth, what it needs.

    Raises:
        LookupError: a command has no rule.
    """
    for command in app.registered_commands:
        name = group + (command.name or get_command_name(command.callback.__name__ if command.callback is not None else ""))
        if name not in NEEDS:
            raise LookupError(f"`lastro {name}` has no rule: say in app/cli/permissions.py what it needs, and in tests/cli/test_verbs.py")
        command.epilog = "\n\n".join(filter(None, (told(NEEDS[name]), command.epilog)))
    for nested in app.registered_groups:
        if nested.typer_instance is not None:
            declare(nested.typer_instance, f"{group}{nested.name} ")


def told(need: Need) -> str:
    """A need, for people."""
    if isinstance(need, Without):
        return need.value
    return "Through a service the key needs " + " or ".join(f"{action} ({_roles(action)})" for action in need) + "."


def _roles(action: Action) -> str:
    roles = [role for role in Role if action in ALLOWED[role]]
    return "any role" if len(roles) == len(Role) else ", ".join(roles)
