"""Retention: how long what a tenant stored stays (U13)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from graph.model.base import Model

MAX_DAYS = 36_500


class RetainedKind(StrEnum):
    """What a rule can be for: the kinds of unit, and the events of the audit trail."""

    TOOL_RESULT = "tool_result"
    DECISION = "decision"
    STATE_SNAPSHOT = "state_snapshot"
    PROGRESS_NOTE = "progress_note"
    CONSTRAINT = "constraint"
    CORRECTION = "correction"
    OBSERVATION = "observation"
    EVENT = "event"


class RetentionRule(Model):
    """How long one kind stays. What has no rule stays for ever, constraints among it."""

    kind: RetainedKind
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = Field(description="Days since it was recorded, by the service's clock.")
    authority: bool = Field(
        default=False,
        description="Whether units of trust normative or approved_artifact go too; otherwise these stay, whatever their age.",
    )


def _once_each(rules: list[RetentionRule]) -> list[RetentionRule]:
    if len({rule.kind for rule in rules}) < len(rules):
        raise PydanticCustomError("invalid_field", "a kind stands twice")
    return rules


class Retention(Model):
    """All rules of a tenant; the body and the answer of ``/v1/retention``."""

    rules: Annotated[list[RetentionRule], Field(max_length=len(RetainedKind)), AfterValidator(_once_each)] = Field(
        default_factory=list[RetentionRule]
    )

    @property
    def units(self) -> dict[RetainedKind, RetentionRule]:
        """The rules for units, by kind."""
        return {rule.kind: rule for rule in self.rules if rule.kind is not RetainedKind.EVENT}

    @property
    def event_days(self) -> int | None:
        """How long events stay; None for ever."""
        return next((rule.days for rule in self.rules if rule.kind is RetainedKind.EVENT), None)


class RetentionReport(Model):
    """What a run of retention erased, or would erase (``dry_run``), by kind."""

    dry_run: bool
    erased: dict[str, int]
    complete: bool = Field(default=True, description="Whether all that was due is gone; otherwise the background job goes on with it.")


class RetentionRun(Model):
    """The body of ``POST /v1/retention/run``."""

    dry_run: bool = Field(default=False, description="Only count what would be erased.")
