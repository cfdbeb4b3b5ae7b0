"""The audit trail in the graph: appended to inside the transaction that does what it tells, read by pages, never changed."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import orjson

from graph import order_keys
from graph.connection import Database, WriteTransaction
from graph.cursors import from_cursor, to_cursor
from graph.model.audit import AuditAction, AuditEvent, AuditPage
from graph.model.scope import AuthorizedScope, scope_key
from graph.statements import Row
from graph.unit_rows import as_datetime


class AuditStore:
    """Appends and reads events of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(
        self,
        transaction: WriteTransaction,
        scope: AuthorizedScope,
        action: AuditAction,
        target: str,
        *,
        reason: str | None = None,
        outcome: str = "done",
        numbers: Mapping[str, int] | None = None,
    ) -> None:
        """Write one event down; it is stored if and only if the transaction is."""
        at = datetime.now(UTC)
        event_id = secrets.token_hex(12)
        principal = scope.principal
        await transaction.run(
            "audit/create_event",
            scope,
            id=event_id,
            event_order=order_keys.tenant_order(scope.tenant_id, order_keys.microseconds(at), event_id),
            at=at.isoformat(),
            action=action.value,
            agent_id=principal.agent_id,
            role=principal.role.value,
            key_id=principal.key_id,
            session_id=principal.session_id,
            place=scope_key(scope.organization_id, scope.assessment_id),
            target=target,
            reason=reason,
            outcome=outcome,
            numbers=orjson.dumps(dict(numbers or {})).decode(),
        )

    async def page(
        self,
        scope: AuthorizedScope,
        *,
        actions: Collection[AuditAction] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> AuditPage:
        """At most ``limit`` events of the tenant, newest first. ``cursor`` is ``next`` of the page before.

        Only of these actions, if any are named; from ``since`` on and before ``until``.

        Raises:
            InvalidField: the cursor was not made here.
        """
        begin, to_key = order_keys.whole_range(scope.tenant_id)
        from_key = begin if since is None else f"{begin}{order_keys.microseconds(since):018d}"
        if until is not None:
            to_key = f"{begin}{order_keys.microseconds(until):018d}"
        if cursor is not None:
            to_key = min(to_key, begin + from_cursor(cursor))
        wanted = [action.value for action in actions or AuditAction]
        rows = await self._database.read("audit/list_events", scope, actions=wanted, from_key=from_key, to_key=to_key, limit=limit)
        following = str(rows[-1]["event_order"]).removeprefix(begin) if len(rows) == limit else None
        return AuditPage(
            events=[_event(row) for row in rows],
            next=None if following is None else to_cursor(following),
        )


def _event(row: Row) -> AuditEvent:
    return AuditEvent.model_construct(
        id=row["id"],
        at=as_datetime(row["at"]),
        action=AuditAction(row["action"]),
        agent_id=row["agent_id"],
        role=row["role"],
        key_id=row["key_id"],
        session_id=row["session_id"],
        place=row["place"],
        target=row["target"],
        reason=row["reason"],
        outcome=row["outcome"],
        numbers=orjson.loads(row["numbers"]),
    )
