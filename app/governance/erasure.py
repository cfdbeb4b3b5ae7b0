"""Erasing units and tenants: what a caller may ask for, and how far one request goes (U12)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence

from app.attachments.attachments import Attachments
from graph.erasure_store import ErasureStore
from graph.model.erasure import ErasureCertificate, ErasureLine, ErasureProgress, Refuses, TenantErasure
from graph.model.errors import Forbidden, InvalidField, NotFound
from graph.model.scope import AuthorizedScope
from graph.tenant_erasure_store import TenantErasureStore

log = logging.getLogger(__name__)

REQUEST_S = 20.0
"""How long a request marks what stood on a unit; the background job does the rest."""


class Erasure:
    """Erases within the scope of who asks."""

    def __init__(
        self, units: ErasureStore, tenants: TenantErasureStore, attachments: Attachments, forgetting: Sequence[Callable[[str], None]]
    ) -> None:
        """``forgetting`` is called with the name of a tenant that is gone, by whoever keeps something of it in memory."""
        self._forgetting = forgetting
        self._attachments = attachments
        self._units = units
        self._tenants = tenants

    async def unit(
        self,
        scope: AuthorizedScope,
        unit_id: str,
        *,
        reason: str | None = None,
        refuses: Refuses = Refuses.VALUE,
        within_s: float = REQUEST_S,
    ) -> str:
        """Erase a unit; the id of its tombstone, which the audit trail names it by.

        Raises:
            NotFound: it does not exist for this caller; the same when it was erased before.
            Forbidden: an agent wants to erase what another wrote.
        """
        tombstone = await self._units.erase(scope, unit_id, reason=reason, refuses=refuses, within_s=within_s)
        await self._attachments.remove_doomed(scope)
        return tombstone

    async def begin_tenant(self, scope: AuthorizedScope, asked: TenantErasure) -> None:
        """Check a tenant's erasure and begin it: from here on its writes are refused.

        Raises:
            Forbidden: the key is bound to a part of the tenant.
            InvalidField: another name than the tenant's own is repeated.
            NotFound: there is no such tenant.
        """
        if scope.principal.is_bound:
            raise Forbidden("A key that is bound to an organisation or assessment cannot erase the tenant.")
        if asked.tenant != scope.tenant_id:
            hint = "Repeat the name of the tenant that the key belongs to: no other can be erased with it."
            raise InvalidField("The name that is repeated is not this tenant's.", hint=hint).at(field="tenant")
        await self._tenants.begin(scope, asked.reason)

    async def rest_of_tenant(self, scope: AuthorizedScope) -> AsyncIterator[ErasureLine]:
        """Go on with a tenant's erasure that was begun, batch by batch, to its certificate. May break off anywhere and be called again."""
        # The bytes first: while the tenant is there, somebody knows that they have to go.
        await self._attachments.remove_tenant(scope)
        while (progress := await self._tenants.step(scope)) is not None:
            yield ErasureLine(progress=progress)
        for forget in self._forgetting:
            forget(scope.tenant_id)
        certificate = await self._tenants.certificate(scope)
        log.warning("a tenant was erased: %d nodes, certificate %s", sum(certificate.nodes.values()), certificate.sha256)
        yield ErasureLine(certificate=certificate)

    async def tenant(
        self, scope: AuthorizedScope, asked: TenantErasure, on_progress: Callable[[ErasureProgress], None]
    ) -> ErasureCertificate:
        """Erase a tenant from beginning to end. For one that is gone already, its certificate, with a new look.

        Raises:
            as ``begin_tenant``.
        """
        try:
            await self.begin_tenant(scope, asked)
        except NotFound:
            return await self._tenants.certificate(scope)
        certificate: ErasureCertificate | None = None
        async for line in self.rest_of_tenant(scope):
            certificate = line.certificate
            if line.progress is not None:
                on_progress(line.progress)
        assert certificate is not None, "the last line bears it"
        return certificate
