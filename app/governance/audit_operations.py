"""The audit trail for every door: read by pages and exported whole. There is nothing that changes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from graph.audit_store import AuditStore
from graph.model.audit import AuditEvent, AuditPage, AuditQuery
from graph.model.errors import Forbidden
from graph.model.scope import AuthorizedScope

EXPORT_PAGE = 500


class AuditOperations(Protocol):
    """What an admin can do with the tenant's audit trail."""

    async def audit(self, query: AuditQuery, *, limit: int = 50, cursor: str | None = None) -> AuditPage: ...
    def export_audit(self, query: AuditQuery) -> AsyncIterator[AuditEvent]: ...


class TenantAudit:
    """On a store that this process runs, within a scope that may read the trail."""

    def __init__(self, store: AuditStore, scope: AuthorizedScope) -> None:
        """Raises Forbidden for a key that is bound to a part of the tenant: the trail tells of all of it."""
        if scope.principal.is_bound:
            raise Forbidden("A key that is bound to an organisation or assessment cannot read the audit trail.")
        self._store = store
        self._scope = scope

    async def audit(self, query: AuditQuery, *, limit: int = 50, cursor: str | None = None) -> AuditPage:
        """A page of events, newest first.

        Raises:
            InvalidField: the cursor was not made here.
        """
        return await self._store.page(self._scope, actions=query.actions, since=query.since, until=query.until, limit=limit, cursor=cursor)

    async def export_audit(self, query: AuditQuery) -> AsyncIterator[AuditEvent]:
        """All events, newest first; those that come while it runs are not among them."""
        cursor: str | None = None
        while True:
            page = await self.audit(query, limit=EXPORT_PAGE, cursor=cursor)
            for event in page.events:
                yield event
            cursor = page.next
            if cursor is None:
                return
