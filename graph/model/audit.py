"""The audit trail on the wire: who did what to which scope, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import Field

from graph.model.base import Model, Timestamp, check_short_text
from graph.model.errors import InvalidField


class AuditAction(StrEnum):
    """What is written down."""

    KEY_CREATED = "key_created"
    KEY_ROTATED = "key_rotated"
    KEY_REVOKED = "key_revoked"
    POLICY_CREATED = "policy_created"
    POLICY_REVOKED = "policy_revoked"
    TEAM_CHANGED = "team_changed"
    QUOTA_CHANGED = "quota_changed"
    QUOTA_REMOVED = "quota_removed"
    UNIT_ERASED = "unit_erased"
    TENANT_ERASED = "tenant_erased"
    RETENTION_CHANGED = "retention_changed"
    RETENTION_APPLIED = "retention_applied"
    CROSS_ASSESSMENT_READ = "cross_assessment_read"


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which events: of these actions (all when empty), from ``since`` on and before ``until``."""

    actions: tuple[AuditAction, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


class AuditEvent(Model):
    """One thing done. It holds no content and no secret."""

    id: str
    at: Timestamp
    action: AuditAction
    agent_id: str = Field(description="The agent, or the person's subject, that did it.")
    role: str
    key_id: str = Field(description="Public id of the key, `local` on the machine of the store, or `oidc`.")
    session_id: str | None
    place: str = Field(description="Organisation and assessment it was done in; empty for the whole tenant.")
    target: str = Field(description="Id of what it was done to: a key, a policy, a unit.")
    reason: str | None = Field(description="What the caller gave as the reason.")
    outcome: str = Field(description="`done`, or the stable code of the refusal.")
    numbers: dict[str, int] = Field(description="Counts that belong to it, such as units erased.")


def reason_of(text: str | None) -> str | None:
    """The reason when it is one that the trail keeps.

    Raises:
        InvalidField: it is longer than a short text, or holds control characters.
    """
    try:
        return None if text is None else check_short_text(text)
    except ValueError:
        raise InvalidField("A reason has at most 512 characters and no control characters.").at(field="reason") from None


class AuditPage(Model):
    """A page of events, newest first; ``next`` is the cursor of the page after it, if there may be one."""

    events: list[AuditEvent]
    next: str | None = None
