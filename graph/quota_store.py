"""Counters and limits in the graph: storage is charged in the transaction that stores, bandwidth in one of its own before the answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from graph.audit_store import AuditStore
from graph.connection import Database, WriteTransaction
from graph.cursors import from_cursor, to_cursor
from graph.model.audit import AuditAction
from graph.model.errors import DatabaseUnavailable, DeadlineExceeded, NotFound, QuotaExceeded, TooLarge
from graph.model.quota import (
    Amount,
    QuotaLimits,
    QuotaNumbers,
    QuotaView,
    Span,
    StoredShare,
    Subject,
    SubjectType,
    UsagePage,
    UsageQuery,
    UsageRow,
    amounts_of,
)
from graph.model.scope import AuthorizedScope
from graph.order_keys import whole_range
from graph.statements import Row
from graph.tenant_lock import lock_tenant

ADMIT_DEADLINE_S = 2.0
"""For what stands before an answer: when the database is silent for so long, it is not there."""
MOST_QUOTAS = 1_000
"""Quotas of one tenant: all of them are read about once a second while it is busy."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOURS = {Span.HOUR: 1, Span.DAY: 24, Span.TOTAL: 10**9}
LAST_HOUR = 10**9
_TYPE_AND_ID = re.compile(r"(?:tenant|agent|session|team) \S{1,128}")


@dataclass(frozen=True, slots=True)
class StoredQuota:
    """A quota as it was read: what is used, and how the window stands by the database's clock."""

    subject: Subject
    limits: QuotaLimits
    units: int
    bytes: int
    requests: int
    tokens: int
    resets_at: datetime | None


@dataclass(slots=True)
class Counts:
    """What somebody did in an hour, as far as one replica counted it."""

    requests: int = 0
    reads: int = 0
    writes: int = 0
    units_written: int = 0
    tokens_read: int = 0
    tokens_written: int = 0


class QuotaStore:
    """Reads and writes counters, quotas and usage of a tenant."""

    def __init__(self, database: Database, audit: AuditStore) -> None:
        self._database = database
        self._audit = audit

    # --- storage --------------------------------------------------------------------------------------------------------------------

    async def charge(self, transaction: WriteTransaction, scope: AuthorizedScope, shares: Iterable[StoredShare]) -> None:
        """Count units that this transaction stores, in one statement; the tenant's lock must be held.

        Raises:
            QuotaExceeded: a limit is passed. What was added goes with the transaction, which must not be committed.
        """
        amounts = amounts_of(scope.tenant_id, shares)
        rows = await self._add(transaction, scope, amounts)
        for row in rows:
            subject = _subject(row)
            for limit, used, most in (("units", row["units"], row["most_units"]), ("bytes", row["bytes"], row["most_bytes"])):
                asked = getattr(amounts[subject], limit)
                if most is not None and used > most:
                    raise QuotaExceeded.of(subject.type, subject.id, limit, allowed=most, used=used - asked, asked=asked)

    async def release(self, transaction: WriteTransaction, scope: AuthorizedScope, shares: Iterable[StoredShare]) -> None:
        """Count units out that this transaction erases; the tenant's lock must be held. Each must be one that was charged."""
        amounts = amounts_of(scope.tenant_id, shares)
        if amounts:
            await self._add(transaction, scope, {subject: -amount for subject, amount in amounts.items()})

    async def _add(self, transaction: WriteTransaction, scope: AuthorizedScope, amounts: Mapping[Subject, Amount]) -> list[Row]:
        # In one order everywhere, so that two that wait for each other's counters do not come about.
        told = [
            {
                "key": subject.key(scope.tenant_id),
                "type": subject.type.value,
                "name": subject.id,
                "units": amount.units,
                "bytes": amount.bytes,
            }
            for subject, amount in sorted(amounts.items(), key=lambda item: item[0].key(scope.tenant_id))
        ]
        rows = await transaction.run("quotas/charge_storage", scope, amounts=told)
        return sorted(rows, key=lambda row: list(SubjectType).index(SubjectType(row["type"])))

    # --- bandwidth ------------------------------------------------------------------------------------------------------------------

    async def count_request(self, scope: AuthorizedScope, subjects: Sequence[Subject]) -> None:
        """Count one request in the windows of these subjects, all of which have a limit of bandwidth.

        A request that is refused is not counted. One whose count was stored and told nobody, since the connection broke, may count twice.

        Raises:
            QuotaExceeded: a limit is reached; says in how many seconds the window ends.
        """

        async def work(transaction: WriteTransaction) -> None:
            for row in await self._spend(transaction, scope, subjects, requests=1, tokens=0):
                _check_window(row, asked_requests=1, asked_tokens=0)

        await self._database.write("quotas/spend_bandwidth", work, deadline_s=ADMIT_DEADLINE_S)

    async def count_tokens(self, scope: AuthorizedScope, subjects: Sequence[Subject], tokens: int) -> None:
        """Count the tokens of an answer that was given. Refuses nothing: the next request meets what is counted here."""

        async def work(transaction: WriteTransaction) -> None:
            await self._spend(transaction, scope, subjects, requests=0, tokens=tokens)

        await self._database.write("quotas/spend_bandwidth", work, deadline_s=ADMIT_DEADLINE_S)

    async def charge_tokens(self, transaction: WriteTransaction, scope: AuthorizedScope, subjects: Sequence[Subject], tokens: int) -> None:
        """Count tokens that this transaction writes.

        Raises:
            QuotaExceeded: a limit would be passed; the transaction must not be committed.
        """
        for row in await self._spend(transaction, scope, subjects, requests=0, tokens=tokens):
            _check_window(row, asked_requests=0, asked_tokens=tokens)

    async def _spend(
        self, transaction: WriteTransaction, scope: AuthorizedScope, subjects: Sequence[Subject], *, requests: int, tokens: int
    ) -> list[Row]:
        keys = sorted(subject.key(scope.tenant_id) for subject in subjects)
        rows = await transaction.run("quotas/spend_bandwidth", scope, keys=keys, requests=requests, tokens=tokens)
        return sorted(rows, key=lambda row: list(SubjectType).index(SubjectType(row["type"])))

    # --- quotas ---------------------------------------------------------------------------------------------------------------------

    async def quotas(self, scope: AuthorizedScope, *, deadline_s: float = 5.0) -> list[StoredQuota]:
        """All quotas of the tenant."""
        from_key, to_key = whole_range(scope.tenant_id)
        rows = await self._database.read("quotas/list_quotas", scope, from_key=from_key, to_key=to_key, deadline_s=deadline_s)
        return [_quota(row) for row in rows]

    async def limits(self, scope: AuthorizedScope) -> list[StoredQuota]:
        """As ``quotas``, for what stands before an answer.

        Raises:
            DatabaseUnavailable: also when the database is silent, which is no matter of a query's deadline.
        """
        try:
            return await self.quotas(scope, deadline_s=ADMIT_DEADLINE_S)
        except DeadlineExceeded:
            raise DatabaseUnavailable(retry_after_s=2) from None

    async def set_quota(self, scope: AuthorizedScope, subject: Subject, limits: QuotaLimits, reason: str | None) -> StoredQuota:
        """Set all limits of a subject, also below what is used already.

        Raises:
            TooLarge: the tenant has as many quotas as it may have.
        """
        key = subject.key(scope.tenant_id)
        from_key, to_key = whole_range(scope.tenant_id)

        async def work(transaction: WriteTransaction) -> StoredQuota:
            await lock_tenant(transaction, scope)
            await transaction.run(
                "quotas/set_quota",
                scope,
                key=key,
                subject_type=subject.type.value,
                subject_id=subject.id,
                most_units=limits.units,
                most_bytes=limits.bytes,
                most_requests=limits.requests,
                most_tokens=limits.tokens,
                window_s=limits.window_s,
            )
            rows = await transaction.run("quotas/list_quotas", scope, from_key=from_key, to_key=to_key)
            if len(rows) > MOST_QUOTAS:
                raise TooLarge(f"A tenant has at most {MOST_QUOTAS} quotas.", hint="Remove those of sessions that are over.")
            told = {name: value for name, value in limits.model_dump().items() if value is not None}
            await self._audit.append(transaction, scope, AuditAction.QUOTA_CHANGED, _target(subject), reason=reason, numbers=told)
            return next(_quota(row) for row in rows if row["key"] == key)

        return await self._database.write("quotas/set_quota", work)

    async def remove_quota(self, scope: AuthorizedScope, subject: Subject, reason: str | None) -> None:
        """Remove all limits of a subject.

        Raises:
            NotFound: it has none.
        """

        async def work(transaction: WriteTransaction) -> None:
            await lock_tenant(transaction, scope)
            if not await transaction.run("quotas/remove_quota", scope, key=subject.key(scope.tenant_id)):
                raise NotFound
            await self._audit.append(transaction, scope, AuditAction.QUOTA_REMOVED, _target(subject), reason=reason)

        await self._database.write("quotas/remove_quota", work)

    # --- usage ----------------------------------------------------------------------------------------------------------------------

    async def record(self, scope: AuthorizedScope, hour: int, replica: str, totals: Mapping[Subject, Counts], *, deadline_s: float) -> bool:
        """Write down what one replica counted of an hour (hours since 1970), as totals: to repeat it changes nothing.

        Whether it was: nothing is written of a tenant that is gone, or going.
        """
        periods = [
            {
                "key": f"{subject.key(scope.tenant_id)} {hour:010d} {replica}",
                "subject": subject.key(scope.tenant_id),
                "type": subject.type.value,
                "name": subject.id,
                "hour": hour,
                "requests": counts.requests,
                "reads": counts.reads,
                "writes": counts.writes,
                "units_written": counts.units_written,
                "tokens_read": counts.tokens_read,
                "tokens_written": counts.tokens_written,
            }
            for subject, counts in sorted(totals.items(), key=lambda item: item[0].key(scope.tenant_id))
        ]

        async def work(transaction: WriteTransaction) -> bool:
            rows = await transaction.run("quotas/record_usage", scope, periods=periods)
            return bool(rows) and int(rows[0]["recorded"]) > 0

        return await self._database.write("quotas/record_usage", work, deadline_s=deadline_s)

    async def usage(self, scope: AuthorizedScope, query: UsageQuery, *, limit: int = 50, cursor: str | None = None) -> UsagePage:
        """What at most ``limit`` subjects hold and did, in the order of their types and ids. A page holds a row for each of them, or, by
        day or hour, one for each span in which a subject did something.

        Raises:
            InvalidField: the cursor was not made here.
        """
        whole_from, whole_to = whole_range(scope.tenant_id)
        from_key, to_key = whole_from, whole_to
        if query.subject_type is not None and query.subject_id is not None:
            from_key = Subject(query.subject_type, query.subject_id).key(scope.tenant_id)
            to_key = from_key + " "
        elif query.subject_type is not None:
            from_key, to_key = whole_range(scope.tenant_id, query.subject_type.value)
        if cursor is not None:
            # No key lies between one and the same with a space behind it.
            from_key = max(from_key, whole_from + from_cursor(cursor, _TYPE_AND_ID) + " ")
        rows = await self._database.read("quotas/list_subjects", scope, from_key=from_key, to_key=to_key, limit=limit)
        if not rows:
            return UsagePage(rows=[])
        following = str(rows[-1]["key"]).removeprefix(whole_from) if len(rows) == limit else None
        return UsagePage(rows=await self._rows(scope, query, rows), next=None if following is None else to_cursor(following))

    async def _rows(self, scope: AuthorizedScope, query: UsageQuery, subjects: Sequence[Row]) -> list[UsageRow]:
        done: dict[str, list[Row]] = {}
        for row in await self._database.read(
            "quotas/sum_periods",
            scope,
            # The subjects of a page stand side by side, so what they did is one range too.
            from_key=f"{subjects[0]['key']} ",
            to_key=f"{subjects[-1]['key']}!",
            from_hour=0 if query.since is None else hour_of(query.since),
            to_hour=LAST_HOUR if query.until is None else hour_of(query.until),
            hours=HOURS[query.by],
        ):
            done.setdefault(str(row["subject"]), []).append(row)
        found: list[UsageRow] = []
        for subject in subjects:
            spans = done.get(str(subject["key"]), [])
            if query.by is Span.TOTAL and not spans:
                spans = [{"starts": 0}]
            found += (_usage(subject, span, query.by) for span in spans)
        return found


def hour_of(at: datetime) -> int:
    """Hours since 1970 in UTC; never negative."""
    return max((at - EPOCH) // timedelta(hours=1), 0)


def _usage(subject: Row, span: Row, by: Span) -> UsageRow:
    return UsageRow(
        subject_type=SubjectType(subject["type"]),
        subject_id=subject["name"],
        starts_at=None if by is Span.TOTAL else EPOCH + timedelta(hours=span["starts"]),
        units=subject["units"],
        bytes=subject["bytes"],
        requests=span.get("requests", 0),
        reads=span.get("reads", 0),
        writes=span.get("writes", 0),
        units_written=span.get("units_written", 0),
        tokens_read=span.get("tokens_read", 0),
        tokens_written=span.get("tokens_written", 0),
    )


def _check_window(row: Row, *, asked_requests: int, asked_tokens: int) -> None:
    subject, resets_in_s = _subject(row), row["resets_in_s"]
    requests, most_requests = row["requests"], row["most_requests"]
    if most_requests is not None and asked_requests and requests > most_requests:
        raise QuotaExceeded.of(
            subject.type,
            subject.id,
            "requests",
            allowed=most_requests,
            used=requests - asked_requests,
            asked=asked_requests,
            resets_in_s=resets_in_s,
        )
    tokens, most_tokens = row["tokens"], row["most_tokens"]
    # A request is let in while any token is left, since nobody knows yet how many it will take; a batch knows, and must fit.
    wanted = max(asked_tokens, 1)
    if most_tokens is not None and tokens - asked_tokens + wanted > most_tokens:
        raise QuotaExceeded.of(
            subject.type, subject.id, "tokens", allowed=most_tokens, used=tokens - asked_tokens, asked=wanted, resets_in_s=resets_in_s
        )


def _quota(row: Row) -> StoredQuota:
    limits = QuotaLimits.model_construct(
        units=row["most_units"], bytes=row["most_bytes"], requests=row["most_requests"], tokens=row["most_tokens"], window_s=row["window_s"]
    )
    resets_at = None
    requests = tokens = 0
    if limits.window_s is not None:
        at = row["now_s"] // limits.window_s
        window = max(at, row["window"]) if row["window"] is not None else at
        resets_at = EPOCH + timedelta(seconds=(window + 1) * limits.window_s)
        if window == row["window"]:
            requests, tokens = row["requests"], row["tokens"]
    return StoredQuota(_subject(row), limits, row["units"], row["bytes"], requests, tokens, resets_at)


def view_of(quota: StoredQuota) -> QuotaView:
    """A quota as it is told."""
    limits = quota.limits
    used = {name: None if getattr(limits, name) is None else getattr(quota, name) for name in ("units", "bytes", "requests", "tokens")}
    remaining = {name: None if value is None else max(getattr(limits, name) - value, 0) for name, value in used.items()}
    return QuotaView(
        subject_type=quota.subject.type,
        subject_id=quota.subject.id,
        limits=limits,
        used=QuotaNumbers(**used),
        remaining=QuotaNumbers(**remaining),
        resets_at=quota.resets_at,
    )


def _subject(row: Row) -> Subject:
    return Subject(SubjectType(row["type"]), row["name"])


def _target(subject: Subject) -> str:
    return f"{subject.type} {subject.id}"
