"""Policies and teams of tenants, held in memory as long as the tenant's policy epoch says that they are true."""

from __future__ import annotations

from collections import OrderedDict

from graph.model.policy import NO_STANDING, Standing
from graph.model.scope import AuthorizedScope
from graph.policy_store import PolicyStore

MOST_TENANTS = 1_000


class Standings:
    """What holds for a tenant. The epoch is read with the caller's key, so a revoked policy ends at once on every replica."""

    def __init__(self, store: PolicyStore) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[int, Standing]] = OrderedDict()

    async def of(self, scope: AuthorizedScope, epoch: int) -> Standing:
        """The tenant's standing as of ``epoch`` or later."""
        if epoch == 0:
            return NO_STANDING  # it never had a policy or a team
        kept = self._kept.get(scope.tenant_id)
        if kept is not None and kept[0] == epoch:
            self._kept.move_to_end(scope.tenant_id)
            return kept[1]
        # Read after the epoch: what changes in between is newer than the number says, and is read again with the next one.
        standing = await self._store.standing(scope)
        self._kept[scope.tenant_id] = (epoch, standing)
        while len(self._kept) > MOST_TENANTS:
            self._kept.popitem(last=False)
        return standing
