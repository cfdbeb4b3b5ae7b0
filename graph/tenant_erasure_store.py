"""A whole tenant is erased: in batches, counted as it goes, resumable by whoever comes next, its keys last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from graph import order_keys
from graph.audit_store import AuditStore
from graph.connection import Database, WriteTransaction
from graph.erasure_store import FEWEST_AT_ONCE, STEP_DEADLINE_S
from graph.model.audit import AuditAction
from graph.model.erasure import ErasureCertificate, ErasureProgress, Scan, TombstoneKeys, checksum
from graph.model.errors import DatabaseBusy, NotFound
from graph.model.scope import AuthorizedScope
from graph.statements import Row

NODES_AT_ONCE = 500
"""Nodes that one transaction deletes, with their edges."""
SCAN_DEADLINE_S = 120.0
"""For the look at every node of the database."""
FOUND_NOTHING = "Every node of the database was looked at for the tenant's name after the last deletion, and none bore it."
FOUND_SOMETHING = (
    "Every node of the database was looked at for the tenant's name after the last deletion: a tenant of this name was made anew."
)


@dataclass(frozen=True, slots=True)
class Counts:
    """What was deleted so far."""

    nodes: Mapping[str, int]
    edges: Mapping[str, int]

    @property
    def progress(self) -> ErasureProgress:
        """The sums of it."""
        return ErasureProgress(nodes=sum(self.nodes.values()), edges=sum(self.edges.values()))

    def plus(self, labels: list[str], edge_types: list[str]) -> Counts:
        """With more that was deleted."""
        return Counts(Counter(self.nodes) + Counter(labels), Counter(self.edges) + Counter(edge_types))

    def as_json(self) -> str:
        return orjson.dumps({"nodes": dict(self.nodes), "edges": dict(self.edges)}).decode()

    @staticmethod
    def from_json(text: str) -> Counts:
        told = orjson.loads(text)
        return Counts(told.get("nodes", {}), told.get("edges", {}))


class TenantErasureStore:
    """Erases tenants."""

    def __init__(self, database: Database, audit: AuditStore, tombstones: TombstoneKeys) -> None:
        self._database = database
        self._audit = audit
        self._tombstones = tombstones

    async def begin(self, scope: AuthorizedScope, reason: str | None) -> None:
        """From here on the tenant takes nothing any more. Beginning again changes nothing.

        Raises:
            NotFound: there is no such tenant.
        """

        async def work(transaction: WriteTransaction) -> None:
            now = datetime.now(UTC).isoformat()
            rows = await transaction.run("erasure/begin_tenant_erasure", scope, at=now)
            if not rows:
                raise NotFound("There is no such tenant.")
            if rows[0]["since"] == now:
                await self._audit.append(transaction, scope, AuditAction.TENANT_ERASED, scope.tenant_id, reason=reason)

        await self._database.write("erasure/begin_tenant_erasure", work)

    async def step(self, scope: AuthorizedScope) -> ErasureProgress | None:
        """Delete one batch; how far it is now, or None when everything is gone, the keys and the tenant too."""
        limit = NODES_AT_ONCE

        async def work(transaction: WriteTransaction) -> ErasureProgress | None:
            locked = await transaction.run("erasure/lock_erasing_tenant", scope)
            if not locked:
                return None
            counts = Counts.from_json(str(locked[0]["counts"]))
            deleted = await self._some(transaction, scope, limit)
            if deleted is not None:
                counts = counts.plus(deleted["labels"], deleted["edge_types"])
                await transaction.run("erasure/record_tenant_erasure", scope, counts=counts.as_json())
                return counts.progress
            keys = await transaction.run("erasure/delete_api_keys", scope)
            await transaction.run("erasure/delete_tenant", scope)
            counts = counts.plus(["ApiKey"] * int(keys[0]["deleted"]) + ["Tenant"], [])
            await transaction.run(
                "erasure/keep_erasure_record",
                record_id=self._tombstones.record_of(scope.tenant_id),
                since=locked[0]["since"],
                ended_at=datetime.now(UTC).isoformat(),
                counts=counts.as_json(),
            )
            return None

        while True:
            try:
                return await self._database.write("erasure/delete_newest_units", work, deadline_s=STEP_DEADLINE_S)
            except DatabaseBusy:
                if limit <= FEWEST_AT_ONCE:
                    raise
                limit //= 4

    async def certificate(self, scope: AuthorizedScope) -> ErasureCertificate:
        """What was erased, after a look at every node of the database.

        Raises:
            NotFound: no erasure of a tenant of this name was ever through.
        """
        kept = await self._database.read("erasure/read_erasure_record", record_id=self._tombstones.record_of(scope.tenant_id))
        if not kept:
            raise NotFound("There is no such tenant.")
        counts = Counts.from_json(str(kept[0]["counts"]))
        begun_at, ended_at = str(kept[0]["since"]), str(kept[0]["ended_at"])
        looked_at = datetime.now(UTC)
        found = (await self._database.read("erasure/scan_for_tenant", scope, deadline_s=SCAN_DEADLINE_S))[0]["found"]
        return ErasureCertificate(
            tenant=scope.tenant_id,
            begun_at=datetime.fromisoformat(begun_at),
            ended_at=datetime.fromisoformat(ended_at),
            nodes=dict(counts.nodes),
            edges=dict(counts.edges),
            sha256=checksum(scope.tenant_id, begun_at, ended_at, counts.nodes, counts.edges),
            scan=Scan(at=looked_at, found=found, statement=FOUND_SOMETHING if found else FOUND_NOTHING),
        )

    async def _some(self, transaction: WriteTransaction, scope: AuthorizedScope, limit: int) -> Row | None:
        """Delete some of what is there; its labels and edge types, or None when nothing but keys and the tenant is left."""
        from_key, to_key = order_keys.whole_range(scope.tenant_id)
        rows = await transaction.run("erasure/delete_newest_units", scope, from_key=from_key, to_key=to_key, limit=limit)
        rows = rows or await transaction.run("erasure/delete_other_nodes", scope, limit=limit)
        return rows[0] if rows else None
