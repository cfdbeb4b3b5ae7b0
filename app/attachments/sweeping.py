"""The background job that removes originals: doomed ones that an erasure left, and those that no unit named within their time."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from app.attachments.attachments import Attachments
from app.background import Background
from graph.lease_store import LeaseStore
from graph.model.errors import LastroError
from graph.model.scope import AuthorizedScope

log = logging.getLogger(__name__)

LEASE = "attachments"
LEASE_S = 60.0
"""A replica that dies at work is followed by another after this. Should two be at work after all, the tenants' locks keep them apart."""
POLL_S = 15.0
"""How often a replica looks whether there is something to do."""
SERVICE = "lastro:attachments"


class SweepingJob:
    """Runs beside the service: one replica at a time, under a lease in the graph."""

    def __init__(
        self,
        attachments: Attachments,
        leases: LeaseStore,
        scope_of: Callable[[str, str], AuthorizedScope],
        *,
        every_s: float = POLL_S,
        lease: str = LEASE,
    ) -> None:
        self._attachments = attachments
        self._leases = leases
        self._scope_of = scope_of
        self._lease = lease
        self._holder = secrets.token_hex(8)
        self.job = Background("attachments", self.once, every_s)

    async def once(self, now: datetime | None = None) -> bool:
        """Remove what is due at ``now``, if this replica gets the lease; whether it got it."""
        at = now or datetime.now(UTC)
        failed: set[tuple[str, str]] = set()
        while await self._leases.take(self._lease, self._holder, LEASE_S) is not None:
            due = [each for each in await self._attachments.due(at) if (each.tenant_id, each.key) not in failed]
            if not due:
                await self._attachments.tidy()
                await self._leases.note_done(self._lease, self._holder)
                return True
            for each in due:
                try:
                    await self._attachments.remove(self._scope_of(each.tenant_id, SERVICE), each, at)
                except LastroError as error:
                    # A tenant that is being erased loses its originals so, and one tenant's trouble is not the others'.
                    failed.add((each.tenant_id, each.key))
                    log.warning("an original is not removed yet: %s", error.code)
        return False
