"""The trail of reads across places: whoever is given units of another place than its own is written down with how many (T5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from graph.model.scope import AuthorizedScope, scope_key
from graph.model.units import ContextUnit
from graph.policy_store import PolicyStore


class Crossings:
    """Writes the trail. A read whose trail cannot be written is not answered."""

    def __init__(self, policies: PolicyStore) -> None:
        self._policies = policies

    async def note(self, scope: AuthorizedScope, units: Iterable[ContextUnit]) -> None:
        """Write down the units among these that are not where the reader is; nothing when there are none, which is nearly always.

        Raises:
            DatabaseBusy, DatabaseUnavailable: the trail could not be written.
        """
        await self.note_counted(scope, foreign_units(scope, units))

    async def note_counted(self, scope: AuthorizedScope, foreign: Mapping[str, int]) -> None:
        """The same for units that are counted already; see ``foreign_units``."""
        for key, number in foreign.items():
            await self._policies.record_crossing(scope, key, number)


def foreign_units(scope: AuthorizedScope, units: Iterable[ContextUnit]) -> Mapping[str, int]:
    """How many of these units are of other places than the reader's, by place (scope key)."""
    own = set(scope.own_places)
    keys = (scope_key(unit.scope.organization_id, unit.scope.assessment_id) for unit in units)
    return Counter(key for key in keys if key not in own)
