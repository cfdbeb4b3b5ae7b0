"""Erasure and retention for every door: the same operations on a store of this process and through a service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from app.governance.erasure import Erasure
from app.governance.retention import RetentionRules
from graph.model.erasure import ErasureCertificate, ErasureProgress, Refuses, TenantErasure
from graph.model.retention import Retention, RetentionReport
from graph.model.scope import AuthorizedScope

OnProgress = Callable[[ErasureProgress], None]


class ErasureOperations(Protocol):
    """What can be erased, and when it is by itself."""

    async def erase(self, unit_id: str, *, reason: str | None = None, refuses: Refuses = Refuses.VALUE) -> str: ...
    async def erase_tenant(self, asked: TenantErasure, on_progress: OnProgress = ...) -> ErasureCertificate: ...
    async def retention(self) -> Retention: ...
    async def set_retention(self, rules: Retention, *, reason: str | None = None) -> Retention: ...
    async def run_retention(self, *, dry_run: bool = False) -> RetentionReport: ...


class LocalErasure:
    """On a store that this process runs: a command takes as long as it takes."""

    def __init__(self, erasure: Erasure, rules: RetentionRules, scope: AuthorizedScope) -> None:
        self._erasure = erasure
        self._rules = rules
        self._scope = scope

    async def erase(self, unit_id: str, *, reason: str | None = None, refuses: Refuses = Refuses.VALUE) -> str:
        return await self._erasure.unit(self._scope, unit_id, reason=reason, refuses=refuses, within_s=float("inf"))

    async def erase_tenant(self, asked: TenantErasure, on_progress: OnProgress = lambda _: None) -> ErasureCertificate:
        return await self._erasure.tenant(self._scope, asked, on_progress)

    async def retention(self) -> Retention:
        return await self._rules.show(self._scope)

    async def set_retention(self, rules: Retention, *, reason: str | None = None) -> Retention:
        return await self._rules.set(self._scope, rules, reason)

    async def run_retention(self, *, dry_run: bool = False) -> RetentionReport:
        return await self._rules.run(self._scope, dry_run=dry_run)
