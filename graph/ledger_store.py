"""The token budget ledger in the graph: totals of each replica and hour, summed when they are asked for (A10)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta

import orjson

from graph.connection import Database, WriteTransaction
from graph.cursors import from_cursor, to_cursor
from graph.model.errors import InvalidField
from graph.model.ledger import NONE, LedgerGroup, LedgerKey, LedgerPage, LedgerQuery, LedgerRow, Spent
from graph.model.scope import AuthorizedScope
from graph.order_keys import whole_range
from graph.quota_store import EPOCH, LAST_HOUR, hour_of
from graph.statements import Row

READ_DEADLINE_S = 10.0
"""A year of a busy tenant is many rows."""
DELETED_AT_ONCE = 1_000
BEFORE_ALL: tuple[int, str, str, str, str] = (-1, "", "", "", "")
_PLACE = re.compile(r"\[.{1,8000}\]", re.DOTALL)


class LedgerStore:
    """Reads and writes the ledger of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(
        self, scope: AuthorizedScope, hour: int, replica: str, totals: Mapping[LedgerKey, Spent], *, deadline_s: float
    ) -> bool:
        """Write down what one replica counted of an hour (hours since 1970), as totals: to repeat it changes nothing.

        Whether it was: nothing is written of a tenant that is gone, or going.
        """
        entries = [
            {"key": whose.key(scope.tenant_id, hour, replica), "hour": hour, **asdict(whose), **asdict(spent)}
            for whose, spent in sorted(totals.items(), key=lambda item: item[0])
        ]

        async def work(transaction: WriteTransaction) -> bool:
            rows = await transaction.run("ledger/record_entries", scope, entries=entries)
            return bool(rows) and int(rows[0]["recorded"]) > 0

        return await self._database.write("ledger/record_entries", work, deadline_s=deadline_s)

    async def page(
        self,
        scope: AuthorizedScope,
        query: LedgerQuery,
        *,
        agent_id: str | None,
        session_id: str | None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> LedgerPage:
        """At most ``limit`` sums, of one agent alone if it is named: and then of one session and of what has none, if that is named.

        Raises:
            InvalidField: the cursor was not made here.
        """
        begin, end = whole_range(scope.tenant_id)
        after = BEFORE_ALL if cursor is None else _place_of(cursor)
        groups = set(query.group_by)
        rows = await self._database.read(
            "ledger/sum_entries",
            scope,
            deadline_s=READ_DEADLINE_S,
            from_key=begin if query.since is None else f"{begin}{hour_of(query.since):010d}",
            to_key=end if query.until is None else f"{begin}{min(hour_of(query.until), LAST_HOUR):010d}",
            agent_id=agent_id or NONE,
            session_id=session_id or NONE,
            task_id=query.task_id or NONE,
            model=query.model or NONE,
            by_agent=LedgerGroup.AGENT in groups,
            by_session=LedgerGroup.SESSION in groups,
            by_task=LedgerGroup.TASK in groups,
            by_model=LedgerGroup.MODEL in groups,
            hours=query.hours or LAST_HOUR,
            after_starts=after[0],
            after_agent=after[1],
            after_session=after[2],
            after_task=after[3],
            after_model=after[4],
            limit=limit,
        )
        following = _cursor(rows[-1]) if len(rows) == limit else None
        return LedgerPage(rows=[_row(row, timed=query.hours > 0) for row in rows], next=following)

    async def delete_before(self, hour: int) -> int:
        """Delete some of the entries of all tenants from before an hour; how many."""

        async def work(transaction: WriteTransaction) -> int:
            rows = await transaction.run("ledger/delete_entries_before", hour=hour, limit=DELETED_AT_ONCE)
            return int(rows[0]["deleted"]) if rows else 0

        return await self._database.write("ledger/delete_entries_before", work)


def _row(row: Row, *, timed: bool) -> LedgerRow:
    return LedgerRow(
        agent_id=row["agent"] or None,
        session_id=row["session"] or None,
        task_id=row["task"] or None,
        model=row["model"] or None,
        starts_at=EPOCH + timedelta(hours=row["starts"]) if timed else None,
        answers=row["answers"],
        cache_hits=row["cache_hits"],
        fallbacks=row["fallbacks"],
        tokens_asked=row["tokens_asked"],
        tokens_spent=row["tokens_spent"],
        tokens_left_out=row["tokens_left_out"],
    )


def _cursor(row: Row) -> str:
    return to_cursor(orjson.dumps([row["starts"], row["agent"], row["session"], row["task"], row["model"]]).decode())


def _place_of(cursor: str) -> tuple[int, str, str, str, str]:
    text = from_cursor(cursor, _PLACE)
    try:
        starts, agent, session, task, model = orjson.loads(text)
    except ValueError:  # of JSON, and of another number of parts
        starts, agent, session, task, model = BEFORE_ALL
    if not (isinstance(starts, int) and starts >= 0 and all(isinstance(name, str) for name in (agent, session, task, model))):
        raise InvalidField("The cursor was not made here.", hint="Start from the first page.").at(field="cursor")
    return starts, agent, session, task, model
