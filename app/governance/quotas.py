"""Limits before the answer, counts after it (T3, T4).

Storage is charged by the unit store itself, in the transaction that stores. Here is bandwidth: a request of a subject with such a quota is
counted in the database before it is answered, so that the limit is exact over replicas; without one, nothing is written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

from app.governance.usage import UsageMeter
from app.registry.permissions import Action
from graph.model.errors import LastroError
from graph.model.quota import Subject, subjects_of
from graph.model.scope import AuthorizedScope
from graph.quota_store import QuotaStore, StoredQuota

log = logging.getLogger(__name__)

KNOWN_S = 1.0
"""How long a replica goes by the quotas it has read: a quota that was set elsewhere holds from then on."""
MOST_TENANTS_KNOWN = 10_000
MEASURED = frozenset({Action.WRITE_UNITS, Action.READ_UNITS, Action.READ_CONTEXT})
"""What counts as a request. What governs does not, or an admin whose quota is used up could not raise it."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The quotas of bandwidth of a tenant, and when they were asked for."""

    quotas: Sequence[StoredQuota]
    at: float


class Quotas:
    """Lets requests in, and counts what they took."""

    def __init__(self, store: QuotaStore, meter: UsageMeter) -> None:
        self._store = store
        self._meter = meter
        self._known: dict[str, _Known] = {}
        self._asking: dict[str, asyncio.Task[_Known]] = {}

    async def admit(self, scope: AuthorizedScope, action: Action) -> None:
        """Count a request in, before anything of it is read.

        Raises:
            QuotaExceeded: a limit of requests or tokens is reached; with the seconds until the window ends.
            DatabaseBusy, DatabaseUnavailable: it cannot be counted now.
        """
        if action not in MEASURED:
            return
        limited = await self._limited(scope, lambda _: True)
        if limited:
            await self._store.count_request(scope, limited)
        self._meter.note(scope, requests=1, reads=int(action is Action.READ_UNITS))

    async def answered(self, scope: AuthorizedScope, tokens: int) -> None:
        """Count the tokens of a context answer, after it. An answer that is ready is given, also when it cannot be counted."""
        self._meter.note(scope, reads=1, tokens_read=tokens)
        try:
            limited = await self.limited_in_tokens(scope)
            if limited and tokens:
                await self._store.count_tokens(scope, limited, tokens)
        except LastroError as error:
            log.warning("the tokens of an answer are not counted: %s", error.code)

    def stored(self, scope: AuthorizedScope, units: int, tokens: int) -> None:
        """Count a batch that was stored: its new units and their tokens (o200k_base)."""
        self._meter.note(scope, writes=1, units_written=units, tokens_written=tokens)

    async def limited_in_tokens(self, scope: AuthorizedScope) -> list[Subject]:
        """Those among whom this caller counts for that have a limit of tokens; usually none."""
        return await self._limited(scope, lambda quota: quota.limits.tokens is not None)

    def forget(self, tenant_id: str) -> None:
        """The tenant's quotas have changed."""
        self._known.pop(tenant_id, None)
        self._asking.pop(tenant_id, None)

    async def _limited(self, scope: AuthorizedScope, which: Callable[[StoredQuota], bool]) -> list[Subject]:
        quotas = await self._quotas_of(scope)
        if not quotas:
            return []
        own = set(subjects_of(scope))
        return [quota.subject for quota in quotas if quota.subject in own and which(quota)]

    async def _quotas_of(self, scope: AuthorizedScope) -> Sequence[StoredQuota]:
        """The tenant's quotas of bandwidth, at most a second old. Callers that come while they are read wait for the same answer."""
        tenant_id = scope.tenant_id
        known = self._known.get(tenant_id)
        if known is None or monotonic() - known.at > KNOWN_S:
            asking = self._asking.get(tenant_id)
            if asking is None:
                asking = self._asking[tenant_id] = asyncio.create_task(self._ask(scope), name="reading quotas")
                asking.add_done_callback(lambda task: self._keep(tenant_id, task))
            known = await asyncio.shield(asking)
        return known.quotas

    async def _ask(self, scope: AuthorizedScope) -> _Known:
        at = monotonic()
        return _Known([quota for quota in await self._store.limits(scope) if quota.limits.limits_bandwidth], at)

    def _keep(self, tenant_id: str, task: asyncio.Task[_Known]) -> None:
        # Asked here, so that nobody needs to wait for a failure; those who wait are told of it all the same.
        failed = task.cancelled() or task.exception() is not None
        if self._asking.get(tenant_id) is not task:
            return
        del self._asking[tenant_id]
        if failed:
            return
        if len(self._known) >= MOST_TENANTS_KNOWN:
            self._known.clear()
        self._known[tenant_id] = task.result()
