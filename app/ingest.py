"""The write path: a batch is completed from who is asking, checked, counted, and stored whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from anyio import to_thread

from adapters.base import unit_body
from adapters.tokenizers import Tokenizers
from app.embedding import Embedding
from app.governance.quotas import Quotas
from app.settings import Settings
from graph.model.batch import check_batch
from graph.model.content import check_content
from graph.model.errors import AgentMismatch, BatchTooLarge, LastroError, TrustNotAllowed
from graph.model.scope import AuthorizedScope, Role, scope_key
from graph.model.units import ContextUnit, Scope, WriteResult
from graph.preparation import Preparation, PreparedUnit
from graph.unit_rows import prepared_unit
from graph.unit_store import UnitStore


class Ingest:
    """Writes batches of units."""

    def __init__(self, units: UnitStore, tokenizers: Tokenizers, settings: Settings, quotas: Quotas, embedding: Embedding) -> None:
        self._embedding = embedding
        self._units = units
        self._quotas = quotas
        self._tokenizers = tokenizers
        self._settings = settings

    async def write(self, scope: AuthorizedScope, batch: Sequence[ContextUnit]) -> WriteResult:
        """Store a batch.

        Raises:
            InvalidInput and its kinds: one bad item refuses the batch and is named; nothing is stored.
            UnitConflict, QuotaExceeded, DatabaseBusy, DatabaseUnavailable: nothing is stored.
        """
        if len(batch) > self._settings.max_batch_units:
            raise BatchTooLarge(f"The batch holds {len(batch)} units; the limit is {self._settings.max_batch_units}.")
        # Parsing markdown and counting tokens are work for the processor, not for the event loop.
        units = await to_thread.run_sync(self._checked, scope, batch)
        recorded_at = datetime.now(UTC)
        async with Preparation(units, lambda unit: self._prepare(scope, unit, recorded_at)) as preparing:
            limited = await self._quotas.limited_in_tokens(scope)
            with self._embedding.writing():
                result = await self._units.write(scope, preparing, limited)
            self._quotas.stored(scope, result.written, preparing.tokens_written)
            if result.written:
                await self._embedding.written()
            return result

    def _checked(self, scope: AuthorizedScope, batch: Sequence[ContextUnit]) -> list[ContextUnit]:
        check_batch(batch)
        return [self._checked_unit(scope, unit, index) for index, unit in enumerate(batch)]

    def _checked_unit(self, scope: AuthorizedScope, unit: ContextUnit, index: int) -> ContextUnit:
        try:
            try:
                check_content(unit.content, self._settings.max_content_bytes)
            except LastroError as error:
                raise error.at(field="content") from None
            return completed(unit, scope)
        except LastroError as error:
            raise error.at(index=index, id=unit.id) from None

    def _prepare(self, scope: AuthorizedScope, unit: ContextUnit, recorded_at: datetime) -> PreparedUnit:
        return prepared_unit(
            unit, scope.principal, self._tokenizers.count_o200k(unit_body(unit)), recorded_at, embeds=self._embedding.embeds
        )


def completed(unit: ContextUnit, scope: AuthorizedScope) -> ContextUnit:
    """The unit with agent, session and scope from who is asking.

    Raises:
        AgentMismatch: the unit names an agent, tenant or place that the caller does not have.
        TrustNotAllowed: the caller's role may not write that trust level.
    """
    principal = scope.principal
    metadata = unit.metadata
    speaks_for_others = principal.role is Role.ADMIN
    owner = unit.owner
    if owner is not None and owner.tenant_id != principal.tenant_id:
        raise AgentMismatch().at(field="owner")
    named = metadata.agent_id or (owner.agent_id if owner is not None else None)
    if named is not None and named != principal.agent_id and not speaks_for_others:
        raise AgentMismatch().at(field="metadata.agent_id")
    if principal.session_bound and metadata.session_id not in {None, principal.session_id}:
        raise AgentMismatch(
            "The unit names another session than the caller's.", hint="A token that names a session writes in that session alone."
        ).at(field="metadata.session_id")
    if unit.trust not in principal.role.trust_levels:
        raise TrustNotAllowed().at(field="trust")
    place = unit.scope
    if place == Scope():
        place = Scope(organization_id=scope.organization_id, assessment_id=scope.assessment_id)
    elif scope_key(place.organization_id, place.assessment_id) not in _writable(scope):
        raise AgentMismatch(
            "The unit's scope is not the one this request is in.",
            hint="Send Lastro-Organization and Lastro-Assessment headers that match the unit's scope, within the key's bounds.",
        ).at(field="scope")
    return unit.model_copy(
        update={
            "owner": None,
            "scope": place,
            "metadata": metadata.model_copy(
                update={"agent_id": named or principal.agent_id, "session_id": metadata.session_id or principal.session_id}
            ),
        }
    )


def _writable(scope: AuthorizedScope) -> list[str]:
    """Scope keys that may be written: what may be read, but for a bound key only where the request is, never upwards from there."""
    if scope.principal.bound == Scope():
        return scope.own_places
    return [scope_key(scope.organization_id, scope.assessment_id)]
