"""Quotas and usage of a tenant for every door: set, removed, listed, exported."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from app.governance.exports import as_csv, pages
from app.governance.quotas import Quotas
from app.governance.usage import UsageMeter
from graph.model.errors import Forbidden, InvalidField, NotFound
from graph.model.quota import QuotaLimits, QuotaList, QuotaView, Subject, SubjectType, UsagePage, UsageQuery, UsageRow, subjects_of
from graph.model.scope import AuthorizedScope
from graph.quota_store import QuotaStore, view_of

EXPORT_PAGE = 200


class QuotaOperations(Protocol):
    """What an admin can do with the tenant's quotas, an analyst with its usage, and everybody with what concerns them."""

    async def list_quotas(self) -> QuotaList: ...
    async def set_quota(self, subject: Subject, limits: QuotaLimits, *, reason: str | None = None) -> QuotaView: ...
    async def remove_quota(self, subject: Subject, *, reason: str | None = None) -> None: ...
    async def usage(self, query: UsageQuery, *, limit: int = 50, cursor: str | None = None) -> UsagePage: ...
    async def own_quotas(self) -> QuotaList: ...


class TenantQuotas:
    """On a store that this process runs, within a scope that may do what is asked."""

    def __init__(self, store: QuotaStore, quotas: Quotas, meter: UsageMeter, scope: AuthorizedScope) -> None:
        self._store = store
        self._quotas = quotas
        self._meter = meter
        self._scope = scope

    async def list_quotas(self) -> QuotaList:
        """All quotas of the tenant, with what is used."""
        self._refuse_bound("see the tenant's quotas")
        return QuotaList(quotas=[view_of(quota) for quota in await self._store.quotas(self._scope)])

    async def set_quota(self, subject: Subject, limits: QuotaLimits, *, reason: str | None = None) -> QuotaView:
        """Set all limits of a subject. It holds at once here, and within a second on other replicas.

        Raises:
            InvalidField: no limit is given, or a window without what it limits, or the other way round.
            NotFound: another tenant is named.
        """
        self._refuse_bound("set quotas")
        self._check_own(subject)
        if not (limits.limits_storage or limits.limits_bandwidth):
            raise InvalidField("A quota has at least one limit.", hint="Give units, bytes, requests or tokens; DELETE removes a quota.")
        if limits.limits_bandwidth != (limits.window_s is not None):
            raise InvalidField("A window goes with a limit of requests or tokens, and these with a window.").at(field="window_s")
        try:
            return view_of(await self._store.set_quota(self._scope, subject, limits, reason))
        finally:
            self._quotas.forget(self._scope.tenant_id)

    async def remove_quota(self, subject: Subject, *, reason: str | None = None) -> None:
        """Remove all limits of a subject; what is counted stays.

        Raises:
            NotFound: it has none, or another tenant is named.
        """
        self._refuse_bound("remove quotas")
        self._check_own(subject)
        try:
            await self._store.remove_quota(self._scope, subject, reason)
        finally:
            self._quotas.forget(self._scope.tenant_id)

    async def usage(self, query: UsageQuery, *, limit: int = 50, cursor: str | None = None) -> UsagePage:
        """A page of who used what, with all that this replica counted until now.

        Raises:
            InvalidField: an id without a type, or a cursor that was not made here.
            NotFound: another tenant is named.
        """
        self._refuse_bound("see the tenant's usage")
        if query.subject_id is not None and query.subject_type is None:
            raise InvalidField("An id of a subject needs its type.").at(field="subject_type")
        if query.subject_type is not None and query.subject_id is not None:
            self._check_own(Subject(query.subject_type, query.subject_id))
        await self._meter.flush(self._scope.tenant_id)
        return await self._store.usage(self._scope, query, limit=limit, cursor=cursor)

    async def own_quotas(self) -> QuotaList:
        """The quotas that hold for this caller, with what remains: of its tenant, agent, session and teams."""
        own = set(subjects_of(self._scope))
        return QuotaList(quotas=[view_of(quota) for quota in await self._store.quotas(self._scope) if quota.subject in own])

    def _refuse_bound(self, what: str) -> None:
        if self._scope.principal.is_bound:
            raise Forbidden(f"A key that is bound to an organisation or assessment cannot {what}.")

    def _check_own(self, subject: Subject) -> None:
        if subject.type is SubjectType.TENANT and subject.id != self._scope.tenant_id:
            raise NotFound


def usage_csv(door: QuotaOperations, query: UsageQuery) -> AsyncIterator[str]:
    """All of the usage that was asked for, as CSV."""
    rows = pages(lambda cursor: door.usage(query, limit=EXPORT_PAGE, cursor=cursor))
    return as_csv(rows, list(UsageRow.model_fields), {"subject_id"})
