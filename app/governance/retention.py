"""Retention: rules for every door, and the background job that applies them and finishes erasures that broke off (U12, U13)."""

from __future__ import annotations

import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from app.attachments.attachments import Attachments
from app.background import Background
from app.governance.erasure import Erasure
from graph.erasure_store import LEFT_ALONE_S, ErasureStore, OpenErasure
from graph.lease_store import LeaseStore
from graph.model.errors import Forbidden, LastroError
from graph.model.retention import RetainedKind, Retention, RetentionReport
from graph.model.scope import AuthorizedScope
from graph.retention_store import Due, RetentionStore

log = logging.getLogger(__name__)

LEASE = "retention"
LEASE_S = 60.0
"""A replica that dies at work is followed by another after this. Should two be at work after all, the tenant's lock keeps them apart."""
POLL_S = 15.0
"""How often a replica looks whether there is something to do."""
SERVICE = "lastro:retention"
"""Who erases, in the audit trail."""


class RetentionRules:
    """Shows, sets and applies the rules of a tenant."""

    def __init__(self, store: RetentionStore, attachments: Attachments) -> None:
        self._attachments = attachments
        self._store = store

    async def show(self, scope: AuthorizedScope) -> Retention:
        """The rules."""
        _refuse_bound(scope)
        return await self._store.rules(scope)

    async def set(self, scope: AuthorizedScope, retention: Retention, reason: str | None = None) -> Retention:
        """Put rules in the place of those before. They are applied by the next run."""
        _refuse_bound(scope)
        await self._store.set_rules(scope, retention, reason)
        return retention

    async def run(
        self, scope: AuthorizedScope, *, dry_run: bool, now: datetime | None = None, between: Callable[[], Awaitable[bool]] | None = None
    ) -> RetentionReport:
        """Erase what is over its time, in batches; a dry run counts it and changes nothing.

        ``between`` is asked after each batch whether to go on.
        """
        _refuse_bound(scope)
        due = Due.at(now or datetime.now(UTC), scope, await self._store.rules(scope))
        if dry_run:
            return RetentionReport(dry_run=True, erased=await self._store.count(scope, due))
        erased: Counter[str] = Counter()
        from_key: str | None = str(due.units["from_key"]) if due.units["cutoffs"] else None
        while from_key is not None:
            kinds, from_key = await self._store.erase_units(scope, due, from_key)
            erased.update(kinds)
            if kinds:
                await self._attachments.remove_doomed(scope)
            if between is not None and not await between():
                return RetentionReport(dry_run=False, erased=dict(erased), complete=from_key is None and due.event_keys is None)
        while deleted := await self._store.delete_events(scope, due):
            erased[RetainedKind.EVENT.value] += deleted
            if between is not None and not await between():
                return RetentionReport(dry_run=False, erased=dict(erased), complete=False)
        return RetentionReport(dry_run=False, erased=dict(erased))


def _refuse_bound(scope: AuthorizedScope) -> None:
    if scope.principal.is_bound:
        raise Forbidden("A key that is bound to an organisation or assessment has no say in the tenant's retention.")


class RetentionJob:
    """Runs beside the service: one replica at a time, under a lease in the graph.

    Every few seconds it finishes erasures that broke off; once in ``interval_s`` seconds it applies every tenant's rules.
    """

    def __init__(
        self,
        store: RetentionStore,
        leases: LeaseStore,
        erasures: ErasureStore,
        erasure: Erasure,
        rules: RetentionRules,
        scope_of: Callable[[str, str], AuthorizedScope],
        interval_s: float,
        lease: str = LEASE,
    ) -> None:
        self._lease = lease
        self._store = store
        self._leases = leases
        self._erasures = erasures
        self._erasure = erasure
        self._rules = rules
        self._scope_of = scope_of
        self._interval = timedelta(seconds=interval_s)
        self._holder = secrets.token_hex(8)
        self.job = Background("retention", self.once, min(POLL_S, interval_s))

    async def once(self, *, left_alone_s: float = LEFT_ALONE_S) -> bool:
        """Do what there is to do, if this replica gets the lease; whether it got it.

        Erasures of units that are younger than ``left_alone_s`` are still in the hands of who began them.
        """
        done_at = await self._leases.take(self._lease, self._holder, LEASE_S)
        if done_at is None:
            return False
        tenants = await self._store.tenants_at_work()
        for tenant in tenants:
            if tenant.erasing and not await self._finish_tenant(tenant.tenant_id):
                return False
        for left in await self._erasures.open_erasures(older_than_s=left_alone_s):
            if not await self._finish_units(left):
                return False
        if datetime.now(UTC) - done_at >= self._interval:
            for tenant in tenants:
                if not tenant.erasing:
                    await self._apply(tenant.tenant_id)
            await self._leases.note_done(self._lease, self._holder)
        return True

    async def _finish_tenant(self, tenant_id: str) -> bool:
        """Go on with a tenant's erasure to its end, or until another replica has the lease (False)."""
        async for _ in self._erasure.rest_of_tenant(self._scope_of(tenant_id, SERVICE)):
            if not await self._still_ours():
                return False
        return True

    async def _finish_units(self, left: OpenErasure) -> bool:
        """The same for an erasure of units."""
        log.info("going on with an erasure that broke off")
        while not await self._erasures.go_on(self._scope_of(left.tenant_id, SERVICE), left.id, within_s=LEASE_S / 4):
            if not await self._still_ours():
                return False
        return True

    async def _apply(self, tenant_id: str) -> None:
        try:
            report = await self._rules.run(self._scope_of(tenant_id, SERVICE), dry_run=False, between=self._still_ours)
        except LastroError as error:
            # One tenant's trouble must not keep the others' time from being up.
            log.warning("retention of a tenant was not applied: %s", error.code)
            return
        if report.erased:
            log.info("retention erased %d", sum(report.erased.values()))

    async def _still_ours(self) -> bool:
        return await self._leases.take(self._lease, self._holder, LEASE_S) is not None
