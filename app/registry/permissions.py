"""What each role may do. A door declares an action; a test walks all doors against this table."""

from __future__ import annotations

from enum import StrEnum

from graph.model.scope import Role


class Action(StrEnum):
    """What a request does, as far as permission goes."""

    WRITE_UNITS = "write_units"
    READ_UNITS = "read_units"
    READ_CONTEXT = "read_context"
    MANAGE_KEYS = "manage_keys"
    MANAGE_POLICIES = "manage_policies"
    ERASE_UNITS = "erase_units"
    ERASE_TENANT = "erase_tenant"
    MANAGE_RETENTION = "manage_retention"
    MANAGE_QUOTAS = "manage_quotas"
    READ_USAGE = "read_usage"
    READ_OWN_USAGE = "read_own_usage"
    READ_LEDGER = "read_ledger"
    READ_AUDIT = "read_audit"


ALLOWED: dict[Role, frozenset[Action]] = {
    Role.ADMIN: frozenset(Action),
    Role.PUBLISHER: frozenset({Action.WRITE_UNITS, Action.READ_UNITS, Action.READ_CONTEXT, Action.READ_OWN_USAGE, Action.READ_LEDGER}),
    Role.AGENT: frozenset(
        {Action.WRITE_UNITS, Action.READ_UNITS, Action.READ_CONTEXT, Action.ERASE_UNITS, Action.READ_OWN_USAGE, Action.READ_LEDGER}
    ),
    Role.ANALYST: frozenset({Action.READ_UNITS, Action.READ_CONTEXT, Action.READ_USAGE, Action.READ_OWN_USAGE, Action.READ_LEDGER}),
}
