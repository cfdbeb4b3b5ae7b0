"""A unit as a row of the database, and back. The only place that knows the property names of a ContextUnit node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timezone
from typing import Any, cast

import orjson

from graph import order_keys
from graph.access import access_text
from graph.model.answer import PathStep
from graph.model.candidates import Candidate
from graph.model.entities import entities_of
from graph.model.scope import Principal, scope_key
from graph.model.search_text import search_text
from graph.model.units import (
    Attachment,
    ContextUnit,
    EdgeType,
    EpistemicStatus,
    Kind,
    Metadata,
    Ownership,
    ProvenanceSource,
    Relation,
    Scope,
    Tier,
    Tool,
    Trust,
    digest,
)
from graph.preparation import PreparedUnit
from graph.statements import Row

MOST_AHEAD_US = 24 * 3600 * 1_000_000


@dataclass(frozen=True, slots=True)
class StoredUnit:
    """A unit as read, with what the writer computed and who replaced or answered it."""

    unit: ContextUnit
    content_tokens: int
    superseder_ids: tuple[str, ...]
    result_ids: tuple[str, ...]


def prepared_unit(
    unit: ContextUnit, principal: Principal, content_tokens: int, recorded_at: datetime, *, embeds: bool = False
) -> PreparedUnit:
    """A checked and complete unit as the store takes it; ``content_tokens`` is what its body costs (o200k_base).

    ``embeds``: it waits for an embedding, if it has words.
    """
    said = digest(unit)
    tool = unit.metadata.tool
    texts = texts_of(unit.content, tool.name, tool.arguments) if tool is not None else [unit.content]
    row = unit_row(unit, principal, said, content_tokens, recorded_at, texts)
    if embeds and any(map(has_words, texts)):
        properties = cast("dict[str, object]", row["properties"])
        properties["embedding_due"] = order_keys.due_order(order_keys.microseconds(recorded_at), principal.tenant_id, unit.id)
    return PreparedUnit(unit, said, row, content_tokens, entities_of(unit.content))


def unit_row(
    unit: ContextUnit, principal: Principal, said: str, content_tokens: int, recorded_at: datetime, texts: Sequence[str]
) -> dict[str, object]:
    """What ``units/create_units`` takes: flat properties, and the times as ISO text. ``texts``: what it is found by."""
    metadata = unit.metadata
    at = metadata.timestamp or recorded_at
    tenant = principal.tenant_id
    # A writer's clock must not put its units before everybody's for all time: order goes by at most a day ahead of ours.
    recorded_us = order_keys.microseconds(recorded_at)
    order_us = min(order_keys.microseconds(at), recorded_us + MOST_AHEAD_US)
    tool = metadata.tool
    properties: dict[str, object] = {
        "kind": unit.kind.value,
        "content": unit.content,
        "agent_id": metadata.agent_id or principal.agent_id,
        "actor": metadata.actor,
        "session_id": metadata.session_id,
        "model": principal.model,
        "task_id": metadata.task_id,
        "task_step": metadata.task_step,
        "epistemic_status": metadata.epistemic_status.value,
        "relevance_score": metadata.relevance_score,
        "tier": metadata.tier.value,
        "organization_id": unit.scope.organization_id,
        "assessment_id": unit.scope.assessment_id,
        "scope_key": scope_key(unit.scope.organization_id, unit.scope.assessment_id),
        "trust": unit.trust.value,
        "digest": said,
        "content_tokens": content_tokens,
        "timestamp_given": metadata.timestamp is not None,
        "recorded_us": recorded_us,
        "tenant_order": order_keys.tenant_order(tenant, order_us, unit.id),
        "search_text": search_text(*texts),
        "access": access_text(
            tenant,
            scope_key(unit.scope.organization_id, unit.scope.assessment_id),
            unit.trust.value,
            unit.kind.value,
            metadata.agent_id or principal.agent_id,
            metadata.session_id,
        ),
    }
    if unit.content.rstrip().endswith("?"):
        properties["asks"] = True
    if can_go_down(unit):
        properties["tier_age"] = order_keys.tier_age(metadata.tier, recorded_us, str(properties["tenant_order"]))
    if metadata.provenance:
        properties["provenance"] = _json([source.model_dump(exclude_none=True) for source in metadata.provenance])
    if principal.teams:
        # Whom the unit counts for besides its agent and session, so that erasing it counts it out again.
        properties["team_ids"] = sorted(principal.teams)
    if unit.labels:
        properties["labels"] = unit.labels
    if unit.attachments:
        properties["attachments"] = _json([attachment.model_dump() for attachment in unit.attachments])
    if tool is not None:
        properties |= {"tool_name": tool.name, "tool_call_id": tool.call_id}
        if tool.arguments is not None:
            properties["tool_arguments"] = _json(tool.arguments)
    properties |= _orders(unit, tenant, order_us)
    return {"id": unit.id, "properties": properties, "timestamp": at.isoformat(), "recorded_at": recorded_at.isoformat()}


def _orders(unit: ContextUnit, tenant: str, order_us: int) -> dict[str, object]:
    """Its keys in the order of its session and of its task."""
    metadata = unit.metadata
    keys: dict[str, object] = {}
    if metadata.session_id is not None:
        keys["session_order"] = order_keys.session_order(tenant, metadata.session_id, order_us, unit.id)
        keys["tier_order"] = order_keys.tier_order(tenant, metadata.session_id, metadata.tier, order_us, unit.id)
    if metadata.task_id is not None:
        keys["task_order"] = order_keys.task_order(tenant, metadata.task_id, order_us, unit.id)
        keys["task_step_order"] = order_keys.task_step_order(tenant, metadata.task_id, metadata.task_step, order_us, unit.id)
    return keys


def can_go_down(unit: ContextUnit) -> bool:
    """Whether there is a tier below for the unit as it is written: not for cold ones, nor for warm ones of authority and constraints (S2)."""
    keeps = unit.kind is Kind.CONSTRAINT or unit.trust.authority
    return unit.metadata.tier is not Tier.COLD and not (unit.metadata.tier is Tier.WARM and keeps)


def has_words(text: str) -> bool:
    """Whether a text says something that has a meaning to embed, and not only numbers and signs."""
    return any(character.isalpha() for character in text)


def texts_of(content: str, tool_name: str | None, arguments: object) -> list[str]:
    """What a unit is found by, by its words and by its meaning: its content, and the tool that it called, with what."""
    return [content, *([tool_name] if tool_name is not None else []), *_names_and_values(arguments)]


def _names_and_values(arguments: object) -> list[str]:
    """The texts in a tool's arguments, without recursion: they may be nested as deeply as JSON allows."""
    found: list[str] = []
    pending = [arguments]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            members = cast("dict[str, object]", part)
            pending.extend(text for pair in reversed(members.items()) for text in reversed(pair))
        elif isinstance(part, list):
            pending.extend(reversed(cast("list[object]", part)))
        elif part is not None and not isinstance(part, bool):
            found.append(str(part))
    return found


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def stored_unit(row: Row) -> StoredUnit:
    """A row of ``units/read_units_by_id`` and its like as a unit. It was checked when it was written, so it is not checked again."""
    tool = None
    if row["tool_name"] is not None:
        arguments = row["tool_arguments"]
        tool = Tool.model_construct(
            name=row["tool_name"], call_id=row["tool_call_id"], arguments=None if arguments is None else orjson.loads(arguments)
        )
    provenance = cast("list[dict[str, Any]]", orjson.loads(row["provenance"])) if row["provenance"] else []
    attachments = cast("list[dict[str, Any]]", orjson.loads(row["attachments"])) if row["attachments"] else []
    unit = ContextUnit.model_construct(
        id=row["id"],
        kind=Kind(row["kind"]),
        content=row["content"],
        metadata=Metadata.model_construct(
            timestamp=as_datetime(row["timestamp"]),
            recorded_at=as_datetime(row["recorded_at"]),
            agent_id=row["agent_id"],
            actor=row["actor"],
            session_id=row["session_id"],
            task_id=row["task_id"],
            task_step=row["task_step"],
            epistemic_status=EpistemicStatus(row["epistemic_status"]),
            provenance=[ProvenanceSource(**source) for source in provenance],
            relevance_score=row["relevance_score"],
            tier=Tier(row["tier"]),
            tool=tool,
            source_erased=row["source_erased"],
        ),
        relations=[
            Relation.model_construct(edge_type=EdgeType(str(edge_type).lower()), target_id=str(target))
            for edge_type, target in sorted(row["relations"])
        ],
        scope=Scope.model_construct(organization_id=row["organization_id"], assessment_id=row["assessment_id"]),
        trust=Trust(row["trust"]),
        labels=row["labels"] or [],
        attachments=[Attachment(**attachment) for attachment in attachments],
        owner=Ownership.model_construct(
            tenant_id=row["tenant_id"], agent_id=row["agent_id"], session_id=row["session_id"], model=row["model"]
        ),
    )
    return StoredUnit(unit, row["content_tokens"], tuple(row["superseder_ids"]), tuple(row["result_ids"]))


# Hundreds of heads are read for one answer, and a table is three times as quick as an enumeration's constructor.
_KINDS = {kind.value: kind for kind in Kind}
_TRUSTS = {trust.value: trust for trust in Trust}
_STATUSES = {status.value: status for status in EpistemicStatus}


def candidate(row: Row, score: float, reason: str, path: tuple[PathStep, ...] = ()) -> Candidate:
    """A row without text as a candidate."""
    return Candidate(
        id=row["id"],
        kind=_KINDS[row["kind"]],
        trust=_TRUSTS[row["trust"]],
        epistemic_status=_STATUSES[row["epistemic_status"]],
        agent_id=row["agent_id"],
        actor=row["actor"],
        timestamp=as_datetime(row["timestamp"]),
        task_id=row["task_id"],
        task_step=row["task_step"],
        tool_name=row["tool_name"],
        content_tokens=row["content_tokens"],
        score=score,
        path=path,
        reason=reason,
        superseded_by=tuple(row["superseder_ids"]),
        results=tuple(row["result_ids"]),
    )


def as_datetime(value: Any) -> datetime:
    """A time as Python's own, with its offset: from ISO text, as statements over many units return it, or from the driver's DateTime.

    The driver takes about 80 µs to make one of its DateTimes (docs/benchmarks.md); a text is there as it came.
    """
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    native: datetime = value.to_native() if hasattr(value, "to_native") else value
    offset = native.utcoffset()
    # The driver's time zones are pytz objects; a plain fixed offset compares, prints and pickles like any other.
    return native.astimezone(UTC) if offset is None or not offset else native.replace(tzinfo=timezone(offset))
