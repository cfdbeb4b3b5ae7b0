"""The line that a unit starts with: what a model cites it by, and how far it may lean on it."""

from __future__ import annotations

from datetime import UTC, datetime

from adapters.fence import field
from graph.model.candidates import Candidate
from graph.model.units import ContextUnit, EpistemicStatus, Kind, Trust


def header(
    *,
    id: str,
    kind: Kind,
    tool_name: str | None,
    who: str | None,
    when: str | None,
    step: int | None,
    status: EpistemicStatus,
    trust: Trust,
    superseded_by: str | None,
    answers: str | None = None,
) -> str:
    """The line a unit starts with. Said is what differs from the rule: a status other than tentative, a trust other than agent_output.

    ``answers`` is the id of the call whose result this is, where the call itself has no such line.
    """
    parts = [f"[unit {field(id)}", kind]
    if kind is Kind.TOOL_RESULT and tool_name:
        parts[1] = f"{kind} of {field(tool_name)}"
    if answers is not None:
        parts.append(f"answers {field(answers)}")
    name = field(who) if who else ""
    if name:
        parts.append(f"by {name}")
    if when:
        parts.append(when)
    if step is not None:
        parts.append(f"step {step}")
    if status is not EpistemicStatus.TENTATIVE:
        parts.append(status)
    if trust is not Trust.AGENT_OUTPUT:
        parts.append(f"trust {trust}")
    if superseded_by is not None:
        parts.append(f"superseded by {field(superseded_by)}")
    return " | ".join(parts) + "]\n"


def header_of_candidate(candidate: Candidate) -> str:
    """The header a candidate would get if its longest superseder stands beside it; for counting only."""
    return header(
        id=candidate.id,
        kind=candidate.kind,
        tool_name=candidate.tool_name,
        who=candidate.actor or candidate.agent_id,
        when=_minute(candidate.timestamp),
        step=candidate.task_step,
        status=candidate.epistemic_status,
        trust=candidate.trust,
        superseded_by=max(candidate.superseded_by, key=len, default=None),
    )


def header_of_unit(unit: ContextUnit, superseded_by: str | None, answers: str | None = None) -> str:
    """The header of a unit as it is rendered."""
    metadata = unit.metadata
    when = metadata.timestamp or metadata.recorded_at
    return header(
        id=unit.id,
        kind=unit.kind,
        tool_name=metadata.tool.name if metadata.tool is not None else None,
        who=metadata.actor or metadata.agent_id or (unit.owner.agent_id if unit.owner is not None else None),
        when=_minute(when) if when is not None else None,
        step=metadata.task_step,
        status=metadata.epistemic_status,
        trust=unit.trust,
        superseded_by=superseded_by,
        answers=answers,
    )


def _minute(when: datetime) -> str:
    """RFC 3339 in UTC to the minute, 16 characters and Z. The first and last day of the calendar may have no UTC; they keep their own time."""
    try:
        when = when.astimezone(UTC)
    except OverflowError:
        when = when.replace(tzinfo=UTC)
    return when.isoformat(timespec="minutes")[:16] + "Z"
