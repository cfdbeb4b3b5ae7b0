"""What is counted without a quota: kept in memory, written down every few seconds, so that a read costs no write (T4).

Limits do not depend on it.
"""

from __future__ import annotations

from app.background import Background
from app.governance.hourly import FLUSH_S, Hour, HourlyTotals
from graph.model.quota import Subject, subjects_of
from graph.model.scope import RESERVED_PREFIX, AuthorizedScope
from graph.quota_store import Counts, QuotaStore


class UsageMeter:
    """Counts what callers do, for each of the subjects they count for."""

    def __init__(self, store: QuotaStore) -> None:
        self._totals = HourlyTotals(store.record, Hour[Subject, Counts])
        self.flush = self._totals.flush
        self.forget = self._totals.forget
        self.job = Background("writing usage down", self.flush, FLUSH_S, at_end=self.flush)

    def note(
        self,
        scope: AuthorizedScope,
        *,
        requests: int = 0,
        reads: int = 0,
        writes: int = 0,
        units_written: int = 0,
        tokens_read: int = 0,
        tokens_written: int = 0,
    ) -> None:
        """Count something that a caller did just now. Tokens in the unit they were counted in."""
        if scope.tenant_id.startswith(RESERVED_PREFIX):
            return
        hour = self._totals.now(scope)
        for subject in subjects_of(scope):
            counts = hour.totals.setdefault(subject, Counts())
            counts.requests += requests
            counts.reads += reads
            counts.writes += writes
            counts.units_written += units_written
            counts.tokens_read += tokens_read
            counts.tokens_written += tokens_written
            hour.fresh.add(subject)
