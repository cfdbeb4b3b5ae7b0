"""What came in answers: kept in memory, written down every few seconds, so that an answer costs no write (S2).

What a replica that was killed had kept in its last seconds is lost: a unit then stays where it is until it is used again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.background import Background
from app.governance.hourly import FLUSH_DEADLINE_S, FLUSH_S
from graph.model.scope import RESERVED_PREFIX, AuthorizedScope
from graph.order_keys import microseconds
from graph.tier_store import TierStore, Use

PART = 200
"""Units written in one transaction."""
MOST_KEPT = 50_000
"""Units that are remembered while the database does not take them; further ones are forgotten."""


@dataclass(slots=True)
class _Kept:
    """What one tenant's callers were given."""

    scope: AuthorizedScope
    uses: dict[str, Use] = field(default_factory=dict[str, Use])


class Uses:
    """Remembers which units answers held, and has them promoted."""

    def __init__(self, store: TierStore) -> None:
        self._store = store
        self._kept: dict[str, _Kept] = {}
        self._number = 0
        self._writing = asyncio.Lock()
        self.job = Background("writing uses down", self.flush, FLUSH_S, at_end=self.flush)

    def note(self, scope: AuthorizedScope, unit_ids: Iterable[str]) -> None:
        """Remember that these units were given to a caller just now."""
        if scope.tenant_id.startswith(RESERVED_PREFIX):
            return
        at_us = microseconds(datetime.now(UTC))
        kept = self._kept.get(scope.tenant_id)
        if kept is None:
            kept = self._kept[scope.tenant_id] = _Kept(scope)
        for unit_id in unit_ids:
            self._keep(kept, Use(unit_id, at_us, 1))

    async def flush(self, *, deadline_s: float = FLUSH_DEADLINE_S) -> None:
        """Write down what is remembered.

        Raises:
            DatabaseBusy, DatabaseUnavailable: some of it is not written; it is kept, and written the next time.
        """
        async with self._writing:
            for tenant_id in list(self._kept):
                kept = self._kept.pop(tenant_id)
                self._number -= len(kept.uses)
                while kept.uses:
                    part = [kept.uses.pop(unit_id) for unit_id in list(kept.uses)[:PART]]
                    try:
                        await self._store.write_uses(kept.scope, part, deadline_s=deadline_s)
                    except BaseException:
                        # Also when the service is told to stop meanwhile.
                        self._take_back(tenant_id, kept, part)
                        raise

    def _take_back(self, tenant_id: str, kept: _Kept, part: list[Use]) -> None:
        again = self._kept.setdefault(tenant_id, _Kept(kept.scope))
        for use in [*part, *kept.uses.values()]:
            self._keep(again, use)

    def _keep(self, kept: _Kept, use: Use) -> None:
        known = kept.uses.get(use.unit_id)
        if known is not None:
            kept.uses[use.unit_id] = Use(use.unit_id, max(use.at_us, known.at_us), known.times + use.times)
        elif self._number < MOST_KEPT:
            kept.uses[use.unit_id] = use
            self._number += 1
