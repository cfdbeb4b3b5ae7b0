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


ALLOWED: dict[Role, frozenset[Action]] = {
    Role.ADMIN: frozenset(Action),
    Role.PUBLISHER: frozenset({Action.WRITE_UNITS, Action.READ_UNITS, Action.READ_CONTEXT}),
    Role.AGENT: frozenset({Action.WRITE_UNITS, Action.READ_UNITS, Action.READ_CONTEXT}),
    Role.ANALYST: frozenset({Action.READ_UNITS, Action.READ_CONTEXT}),
}
