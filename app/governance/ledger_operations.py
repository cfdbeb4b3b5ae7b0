"""The token budget ledger for every door: who sees what of it, by pages and exported (A10)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from app.governance.exports import as_csv, pages
from app.governance.ledger import BudgetLedger
from graph.ledger_store import LedgerStore
from graph.model.errors import Forbidden, InvalidField
from graph.model.ledger import LedgerGroup, LedgerPage, LedgerQuery, LedgerRow
from graph.model.scope import AuthorizedScope, Role
from graph.model.units import Scope

PAGE = 200
EXPORT_PAGE = 5_000
"""Where the store is at hand: each page sums anew what was asked for."""
NAMES = frozenset({"agent_id", "session_id", "task_id", "model"})


class LedgerOperations(Protocol):
    """What a caller can ask of the ledger."""

    async def ledger(self, query: LedgerQuery, *, limit: int = 50, cursor: str | None = None) -> LedgerPage: ...


class TenantLedger:
    """On a store that this process runs, within a scope that may read the ledger.

    An admin sees the tenant's; everybody else, and whoever is kept to a session, what its own agent's answers cost: those of the session that
    it names and of none, or of all of its sessions, as with units.
    """

    def __init__(self, store: LedgerStore, ledger: BudgetLedger, scope: AuthorizedScope) -> None:
        self._store = store
        self._ledger = ledger
        self._scope = scope

    async def ledger(self, query: LedgerQuery, *, limit: int = 50, cursor: str | None = None) -> LedgerPage:
        """A page of what answers cost, with all that this replica noted until now.

        Raises:
            Forbidden: the key is bound to an organisation or assessment, of which the ledger says nothing.
            InvalidField: two periods, or a cursor that was not made here.
        """
        principal = self._scope.principal
        if principal.bound != Scope():
            raise Forbidden("A key that is bound to an organisation or assessment cannot read the ledger.")
        if {LedgerGroup.HOUR, LedgerGroup.DAY} <= set(query.group_by):
            raise InvalidField("Rows are of an hour or of a day.").at(field="group_by")
        await self._ledger.flush(self._scope.tenant_id)
        if principal.role is Role.ADMIN and not principal.is_bound:
            return await self._store.page(self._scope, query, agent_id=query.agent_id, session_id=None, limit=limit, cursor=cursor)
        if query.agent_id not in {None, principal.agent_id}:
            return LedgerPage(rows=[])
        own, session = principal.agent_id, principal.session_id
        return await self._store.page(self._scope, query, agent_id=own, session_id=session, limit=limit, cursor=cursor)


def ledger_rows(door: LedgerOperations, query: LedgerQuery, limit: int = PAGE) -> AsyncIterator[Sequence[LedgerRow]]:
    """All of the ledger that was asked for, by pages of so many rows."""
    return pages(lambda cursor: door.ledger(query, limit=limit, cursor=cursor))


def ledger_csv(rows: AsyncIterator[Sequence[LedgerRow]]) -> AsyncIterator[str]:
    """The rows as CSV."""
    return as_csv(rows, list(LedgerRow.model_fields), NAMES)
