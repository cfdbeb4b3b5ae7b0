"""Context units in the graph: written whole or not at all, read within a scope."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import cast

from neo4j.exceptions import TransientError

from graph.attachment_store import link_attachments
from graph.connection import Database, WriteTransaction
from graph.cursors import from_cursor, to_cursor
from graph.model.answer import AnswerRelation, Lineage
from graph.model.erasure import TombstoneKeys
from graph.model.errors import InvalidField, LowerTrustSupersedes, NotFound, QuotaExceeded, TargetNotFound, UnitConflict, UnitErased
from graph.model.quota import Subject, shares_of
from graph.model.scope import AuthorizedScope
from graph.model.units import ContextUnit, EdgeType, Kind, Trust, UnitPage, WriteResult, digest_without_time
from graph.order_keys import FOREVER_US, session_place, whole_range
from graph.preparation import Preparation, PreparedUnit
from graph.quota_store import QuotaStore
from graph.statements import Row
from graph.tenant_lock import lock_tenant
from graph.tombstones import made_from_erased, refuse_erased
from graph.unit_rows import StoredUnit, stored_unit

LARGE_BATCH = 64
"""Units from which on a batch is first tried as if all of it were new."""
LINEAGE_FAN = 64
"""Edges read of one unit in one step of a lineage."""
NEEDS_LEVELS = 2
"""Levels that ``units/read_units_with_needs`` follows."""
LINEAGE_LIMIT = 500
"""Units in one lineage answer."""


class UnitStore:
    """Reads and writes units. Every method needs the scope of who is asking."""

    def __init__(self, database: Database, tombstones: TombstoneKeys, quotas: QuotaStore) -> None:
        self._database = database
        self._tombstones = tombstones
        self._quotas = quotas

    async def write(self, scope: AuthorizedScope, batch: Preparation, token_limited: Sequence[Subject] = ()) -> WriteResult:
        """Store a batch whole: new units with their edges, in one transaction that holds the tenant's lock (U8, U9).

        New units count for their agent, session, the writer's teams and the tenant in the same transaction (T3); their tokens count for
        ``token_limited``.

        Raises:
            QuotaExceeded: a limit would be passed.
            UnitConflict: an id is taken by other content, also when its owner is out of sight.
            UnitErased: an id or a content was erased in this tenant.
            TargetNotFound: an edge points to what does not exist for this writer.
            LowerTrustSupersedes: C2.
            DatabaseBusy, DatabaseUnavailable: nothing was stored; send it again.
        """
        units = batch.units
        ids = {unit.id for unit in units}
        targets = {relation.target_id for unit in units for relation in unit.relations} - ids
        tries = 0

        async def work(transaction: WriteTransaction) -> WriteResult:
            nonlocal tries
            tries += 1
            # A large batch is nearly always new, and looking for each of its ids took a fifth of the write. So a few are looked for; if one
            # that was not is taken, the unique key refuses the batch, and it is tried again with all of them looked for.
            few = {units[0].id, units[len(units) // 2].id, units[-1].id}
            asked = ids if tries > 1 or len(units) < LARGE_BATCH else few
            # Locked first: two writers of one tenant queue here; reading before locking would lose updates on every engine.
            locked = await lock_tenant(transaction, scope)
            rows = await transaction.run("units/read_stored_keys", scope, ids=sorted(asked | targets))
            stored = {str(row["id"]): row for row in rows}
            if asked is not ids and not stored.keys().isdisjoint(few):
                rows = await transaction.run("units/read_stored_keys", scope, ids=sorted(ids | targets))
                stored = {str(row["id"]): row for row in rows}
                asked = ids
            if stored.keys().isdisjoint(ids):
                new, parts = list(units), batch.parts()
            else:
                kept = [item for index, item in enumerate(await batch.whole()) if not _already_there(item, stored, index)]
                new, parts = [item.unit for item in kept], _as_one(kept)
            if locked.tombstones:
                try:
                    await refuse_erased(transaction, scope, self._tombstones, units, new)
                except UnitErased:
                    if asked is ids:
                        raise
                    # A unit that is there already stays, though another of the same content was erased.
                    raise TransientError("a batch that was taken for new holds what was erased") from None
            _check_targets(units, new, stored)
            batch.tokens_written = 0
            if new:
                await self._charge(transaction, scope, new, certain=asked is ids)
                await _create(transaction, scope, new, parts, stored)
                fresh = {unit.id for unit in new}
                batch.tokens_written = sum(item.content_tokens for item in await batch.whole() if item.unit.id in fresh)
                if token_limited:
                    await self._quotas.charge_tokens(transaction, scope, token_limited, batch.tokens_written)
            return WriteResult(written=len(new), unchanged=len(units) - len(new), ids=[unit.id for unit in units])

        return await self._database.write("units/write_batch", work)

    async def _charge(self, transaction: WriteTransaction, scope: AuthorizedScope, new: Sequence[ContextUnit], *, certain: bool) -> None:
        """Count what is new; ``certain`` when every id was looked for."""
        try:
            await self._quotas.charge(transaction, scope, shares_of(scope, new))
        except QuotaExceeded:
            if certain:
                raise
            # Some of what was taken for new may be there already, and would cost nothing: looked at again, with all ids.
            raise TransientError("a batch that was taken for new is over a quota") from None

    async def read(self, scope: AuthorizedScope, unit_id: str) -> ContextUnit:
        """One unit.

        Raises:
            NotFound: it does not exist for this caller; the same whether it exists elsewhere or not.
        """
        found = await self.read_many(scope, [unit_id])
        if not found:
            raise NotFound
        return found[0].unit

    async def read_many(
        self, scope: AuthorizedScope, unit_ids: Sequence[str], *, as_of_us: int = FOREVER_US, deadline_s: float = 5.0
    ) -> list[StoredUnit]:
        """The units among these ids that this caller may see, with their text, in no particular order."""
        rows = await self._database.read("units/read_units_by_id", scope, ids=list(unit_ids), as_of_us=as_of_us, deadline_s=deadline_s)
        return [stored_unit(row) for row in rows]

    async def read_with_needs(
        self, scope: AuthorizedScope, unit_ids: Sequence[str], *, most: int, as_of_us: int = FOREVER_US, deadline_s: float = 5.0
    ) -> list[StoredUnit]:
        """As ``read_many``, and with them at most ``most`` others: what these need, and what decides about that.

        What the others depend on, and what the bound cut, is not among them: look at what they name, and ask again.
        """
        rows = await self._database.read(
            "units/read_units_with_needs", scope, ids=list(unit_ids), most=most // NEEDS_LEVELS, as_of_us=as_of_us, deadline_s=deadline_s
        )
        return [stored_unit(row) for row in rows[0]["rows"]]

    async def page(
        self,
        scope: AuthorizedScope,
        *,
        session_id: str | None = None,
        task_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> UnitPage:
        """At most ``limit`` units of a session, a task or the tenant, newest first. ``cursor`` is ``next`` of the page before.

        Raises:
            InvalidField: both a session and a task are named, or the cursor was not made here.
        """
        if session_id is not None and task_id is not None:
            raise InvalidField("Name a session or a task, not both.")
        what = "session" if session_id is not None else "task" if task_id is not None else "tenant"
        parts = [part for part in (scope.tenant_id, session_id, task_id) if part is not None]
        from_key, to_key = whole_range(*parts)
        if cursor is not None:
            to_key = from_key + from_cursor(cursor)
        rows = await self._database.read(f"units/list_units_by_{what}", scope, from_key=from_key, to_key=to_key, limit=limit)
        following = to_cursor(str(rows[-1]["order_key"]).removeprefix(from_key)) if len(rows) == limit else None
        return UnitPage(units=[stored_unit(row).unit for row in rows], next=following)

    async def lineage(self, scope: AuthorizedScope, unit_id: str, *, before: bool, after: bool, depth: int) -> Lineage:
        """Units within ``depth`` edges before or after one, nearest first, and the edges walked.

        Raises:
            NotFound: the unit does not exist for this caller.
        """
        start = await self.read(scope, unit_id)
        edges: dict[tuple[str, str, str], None] = {}
        reached: dict[str, None] = {unit_id: None}
        truncated = False
        for direction, wanted in (("before", before), ("after", after)):
            frontier = [unit_id] if wanted else []
            for _ in range(depth):
                if not frontier:
                    break
                rows = await self._database.read(f"units/step_lineage_{direction}", scope, ids=frontier, fan=LINEAGE_FAN)
                truncated = truncated or _cut(rows)
                following: dict[str, None] = {}
                for row in rows:
                    near, far, edge_type = str(row["from_id"]), str(row["id"]), str(row["edge_type"])
                    if far not in reached:
                        if len(reached) >= LINEAGE_LIMIT:
                            truncated = True
                            continue
                        reached[far] = None
                        following[far] = None
                    edges[(near, far, edge_type) if direction == "before" else (far, near, edge_type)] = None
                frontier = list(following)
        others = [found for found in reached if found != unit_id]
        units = {item.unit.id: item.unit for item in await self.read_many(scope, others)} if others else {}
        relations = [AnswerRelation(source_id=a, target_id=b, edge_type=EdgeType(kind.lower())) for a, b, kind in edges]
        return Lineage(units=[start, *(units[found] for found in others if found in units)], relations=relations, truncated=truncated)


def _cut(rows: Iterable[Row]) -> bool:
    per_unit: dict[str, int] = defaultdict(int)
    for row in rows:
        per_unit[str(row["from_id"])] += 1
    return any(number >= LINEAGE_FAN for number in per_unit.values())


def _already_there(item: PreparedUnit, stored: dict[str, Row], index: int) -> bool:
    row = stored.get(item.unit.id)
    if row is None:
        return False
    # A unit that was written without a time and is sent back with the one it was given is still the same unit.
    same = row["digest"] == item.digest or (not row["timestamp_given"] and row["digest"] == digest_without_time(item.unit))
    # The digest covers agent and place, so who can say it wrote it, also from a session that does not see it.
    if not same:
        raise UnitConflict().at(index=index, id=item.unit.id)
    return True


def _check_targets(batch: Sequence[ContextUnit], new: Sequence[ContextUnit], stored: dict[str, Row]) -> None:
    inside = {unit.id: unit for unit in batch}
    position = {unit.id: index for index, unit in enumerate(batch)}
    for unit in new:
        for relation in unit.relations:
            target = relation.target_id
            row = stored.get(target)
            if target not in inside and (row is None or not row["visible"]):
                raise TargetNotFound().at(index=position[unit.id], id=unit.id, field="relations")
            if relation.edge_type is EdgeType.SUPERSESSION:
                trust = inside[target].trust if target in inside else Trust(str(stored[target]["trust"]))
                if unit.trust.rank > trust.rank:
                    raise LowerTrustSupersedes().at(index=position[unit.id], id=unit.id, field="relations")


def _completed(item: PreparedUnit, places: Mapping[str, str], marked: Collection[str]) -> dict[str, object]:
    """The row with what only the transaction knows of the unit."""
    properties = cast("dict[str, object]", item.row["properties"])
    if item.unit.id in marked:
        properties = {**properties, "source_erased": True}
    if item.unit.id in places:
        properties = {**properties, "session_place": places[item.unit.id]}
    return {**item.row, "properties": properties}


async def _session_places(transaction: WriteTransaction, scope: AuthorizedScope, units: Sequence[ContextUnit]) -> dict[str, str]:
    """A place in its session for each unit that has one, in the order of arrival."""
    by_session: dict[str, list[str]] = defaultdict(list)
    for unit in units:
        if unit.metadata.session_id is not None:
            by_session[unit.metadata.session_id].append(unit.id)
    if not by_session:
        return {}
    asked = [{"id": session_id, "count": len(ids)} for session_id, ids in by_session.items()]
    rows = await transaction.run("units/take_session_places", scope, sessions=asked)
    return {
        unit_id: session_place(scope.tenant_id, str(row["id"]), int(row["places"]) - len(by_session[str(row["id"])]) + number)
        for row in rows
        for number, unit_id in enumerate(by_session[str(row["id"])], start=1)
    }


async def _as_one(items: list[PreparedUnit]) -> AsyncIterator[list[PreparedUnit]]:
    yield items


async def _create(
    transaction: WriteTransaction,
    scope: AuthorizedScope,
    units: Sequence[ContextUnit],
    parts: AsyncIterable[Sequence[PreparedUnit]],
    stored: dict[str, Row],
) -> None:
    marked = made_from_erased(units, stored)
    places = await _session_places(transaction, scope, units)
    async for part in parts:
        if part:
            await transaction.run("units/create_units", scope, rows=[_completed(item, places, marked) for item in part])
            await _link_entities(transaction, scope, part)
    await _link_memberships(transaction, scope, units)
    await link_attachments(transaction, scope, units)
    edges: dict[EdgeType, dict[tuple[str, str], None]] = defaultdict(dict)
    for unit in units:
        for relation in unit.relations:
            edges[relation.edge_type][unit.id, relation.target_id] = None
    for edge_type, pairs in edges.items():
        told = [{"source_id": source, "target_id": target} for source, target in pairs]
        written = await transaction.run(f"units/create_{edge_type}_edges", scope, edges=told)
        if not written or written[0]["written"] != len(pairs):
            # Another transaction came between the check and here: on the embedded engine, whose lock holds only at commit, one that wrote the
            # same units, which are then there twice. Run again, the batch finds what is really there, or that a target is gone.
            raise TransientError("the targets of a batch changed meanwhile")
    inside = {unit.id: unit for unit in units}
    results = [
        {"call_id": target, "result_id": source}
        for source, target in edges[EdgeType.CAUSATION]
        if inside[source].kind is Kind.TOOL_RESULT and _is_call_of(inside[source].metadata.agent_id, target, inside, stored)
    ]
    if results:
        await transaction.run("units/mark_results", scope, pairs=results)


async def _link_entities(transaction: WriteTransaction, scope: AuthorizedScope, part: Sequence[PreparedUnit]) -> None:
    """What new units speak of (S8)."""
    mentions = [{"id": item.unit.id, "keys": list(item.entities.mentions)} for item in part if item.entities.mentions]
    subjects = [{"id": item.unit.id, "keys": list(item.entities.about)} for item in part if item.entities.about]
    if mentions:
        await transaction.run("units/link_mentions", scope, rows=mentions)
    if subjects:
        await transaction.run("units/link_subjects", scope, rows=subjects)


async def _link_memberships(transaction: WriteTransaction, scope: AuthorizedScope, units: Sequence[ContextUnit]) -> None:
    """Sessions, tasks and what constrains these; one statement for each of them, since a batch usually has one of each."""
    sessions: dict[tuple[str, str], list[str]] = defaultdict(list)
    tasks: dict[str, list[str]] = defaultdict(list)
    constraints: dict[str, list[str]] = defaultdict(list)
    rules: dict[str, list[str]] = defaultdict(list)
    for unit in units:
        metadata = unit.metadata
        if metadata.session_id is not None:
            sessions[metadata.session_id, metadata.agent_id or scope.principal.agent_id].append(unit.id)
        if metadata.task_id is not None:
            tasks[metadata.task_id].append(unit.id)
            if unit.kind is Kind.CONSTRAINT:
                constraints[metadata.task_id].append(unit.id)
                if unit.trust.authority:
                    rules[metadata.task_id].append(unit.id)
    for (session_id, agent_id), unit_ids in sessions.items():
        await transaction.run("units/merge_session", scope, session_id=session_id, agent_id=agent_id, unit_ids=unit_ids)
    for task_id, unit_ids in tasks.items():
        await transaction.run("units/merge_task", scope, task_id=task_id, unit_ids=unit_ids)
    for task_id, unit_ids in constraints.items():
        await transaction.run("units/bind_constraints", scope, task_id=task_id, unit_ids=unit_ids)
    for task_id, unit_ids in rules.items():
        await transaction.run("units/bind_rules", scope, task_id=task_id, unit_ids=unit_ids)


def _is_call_of(agent_id: str | None, unit_id: str, inside: dict[str, ContextUnit], stored: dict[str, Row]) -> bool:
    """Whether a unit is a tool call of that agent. What another agent says of a call is no result of it: it may be out of the caller's sight,
    and would take the place of one that is not.
    """
    unit = inside.get(unit_id)
    if unit is not None:
        return unit.kind is Kind.DECISION and unit.metadata.tool is not None and unit.metadata.agent_id == agent_id
    row = stored[unit_id]
    return row["kind"] == Kind.DECISION and bool(row["has_tool"]) and row["agent_id"] == agent_id
