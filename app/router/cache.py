"""Answers that hold for a moment: the same question of the same principal is answered once (R4).

A kept answer is true for as long as nothing in its tenant was changed. The tenant's epoch says whether something was: every write, erasure
and change of policies, teams or keys raises it, and it is read with the caller's key on each request, so replicas need not tell each
other. docs/decisions/0014 has the rest.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from time import monotonic

from app.router.planner import Plan
from graph.model.answer import ContextAnswer
from graph.model.errors import DeadlineExceeded
from graph.model.scope import Principal
from graph.tenant_lock import LOCAL_KEY_ID, OIDC_KEY_ID

MOST_WAITS = 2
"""Others that one request waits for, one after the other. After these it answers for itself: a question that nobody can answer must not be
tried by all who asked it in a row."""
NOT_BY_VALUE = frozenset({"key_id", "epoch", "standing"})
"""What of a principal is not in the key by its value: of its API key only the kind is, and the other two are the epoch, or change with it."""
API_KEY = "api_key"
FROM_CACHE = "The same question was answered a moment ago, and nothing has changed since; the attempts are those of that time."
LATE = "This came after its deadline: it was done when that passed, and is not less for it."

Key = tuple[object, ...]


class CacheState(StrEnum):
    """What a receipt says."""

    HIT = "hit"
    """The answer was made for another request, now or a moment ago."""
    MISS = "miss"
    """It was made for this one."""
    OFF = "off"
    """Nothing is kept: by the settings, or for a caller whose epoch is not known."""


@dataclass(frozen=True, slots=True)
class Made:
    """An answer, with what must be written down for each request that it is given to."""

    answer: ContextAnswer
    foreign: Mapping[str, int]
    """Units of other places than the reader's, by place."""
    tokens_left_out: int
    """Tokens of what was left out for the budget."""
    until: datetime | None = None
    """When something in it ends by time."""

    @property
    def is_whole(self) -> bool:
        """Whether it is the answer that the question has, and not what could be had in the time there was."""
        receipt = self.answer.receipt
        return not receipt.fallback and not receipt.partial and all(attempt.outcome == "answered" for attempt in receipt.attempts)


@dataclass(slots=True)
class Turn:
    """One request's turn at its question. Whoever finds nothing ``made`` makes it and says it here."""

    state: CacheState
    made: Made | None = None

    @property
    def is_hit(self) -> bool:
        """Whether the answer was made for another request."""
        return self.state is CacheState.HIT


def given(made: Made, state: CacheState, timings_ms: Mapping[str, float]) -> ContextAnswer:
    """The answer as one request gets it: with a trace and times of its own."""
    receipt = made.answer.receipt
    notes = [
        *receipt.notes,
        *([FROM_CACHE] if state is CacheState.HIT else []),
        *([LATE] if timings_ms["total"] > receipt.deadline_ms else []),
    ]
    told: dict[str, object] = {"cache": state.value, "timings_ms": dict(timings_ms), "notes": notes}
    if state is CacheState.HIT:
        told["trace_id"] = uuid.uuid4().hex
    return made.answer.model_copy(update={"receipt": receipt.model_copy(update=told)})


@dataclass(slots=True)
class _Flight:
    """A question that is being answered, and what came of it."""

    ended: asyncio.Event = field(default_factory=asyncio.Event)
    made: Made | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer, the epoch that it holds for, and until when."""

    made: Made
    epoch: int
    ends: float
    """By ``time.monotonic``."""
    until: datetime
    size: int

    def holds(self, epoch: int) -> bool:
        return self.epoch == epoch and monotonic() < self.ends and datetime.now(UTC) < self.until


class AnswerCache:
    """Keeps answers of all tenants, the latest used of them, within a bound."""

    def __init__(self, ttl_s: float, most_answers: int, most_bytes: int) -> None:
        """``ttl_s``: seconds that an answer is kept; 0 keeps none. ``most_bytes``: of all that is kept, by its length as JSON."""
        self._ttl_s = ttl_s
        self._most_answers = most_answers
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._bytes = 0
        self._flights: dict[tuple[Key, int], _Flight] = {}
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def answers(self) -> int:
        """How many are kept now."""
        return len(self._kept)

    @property
    def bytes(self) -> int:
        """Their length as JSON."""
        return self._bytes

    def clear(self) -> None:
        """Keep nothing of what was made until now."""
        self._kept.clear()
        self._bytes = 0
        # Who makes one now still hands it to those that wait for it; it is not kept, since its flight is not known any more.
        self._flights.clear()

    @asynccontextmanager
    async def once(self, plan: Plan) -> AsyncGenerator[Turn]:
        """A turn that holds the answer, or one in which it is made: by one request at a time for each question.

        Others wait for it, each until its own deadline. When it fails, one of them takes its place; an answer that is given is theirs too, but
        only a whole one is kept.

        Raises:
            DeadlineExceeded: whoever makes it takes longer than this request can wait.
        """
        epoch = plan.scope.principal.epoch
        if self._ttl_s <= 0 or epoch is None:
            yield Turn(CacheState.OFF)
            return
        key = key_of(plan)
        made = await self._found(key, epoch, plan)
        if made is not None:
            yield Turn(CacheState.HIT, made)
            return
        turn, flight = Turn(CacheState.MISS), _Flight()
        # Whoever has waited long enough answers beside the one that others wait for.
        self._flights.setdefault((key, epoch), flight)
        try:
            yield turn
            flight.made = turn.made
        finally:
            # Also when it failed, or its caller left: those who wait go on.
            flight.ended.set()
            awaited = self._flights.get((key, epoch)) is flight
            if awaited:
                del self._flights[key, epoch]
        if awaited and turn.made is not None and turn.made.is_whole:
            self._keep(key, epoch, plan.scope.holds_until, turn.made)

    async def _found(self, key: Key, epoch: int, plan: Plan) -> Made | None:
        """The answer that is kept, or that others are making; None when it is this request's turn."""
        for _ in range(MOST_WAITS):
            kept = self._kept.get(key)
            if kept is not None and kept.holds(epoch):
                self._kept.move_to_end(key)
                return kept.made
            if kept is not None and kept.epoch <= epoch:
                self._drop(key)
            flight = self._flights.get((key, epoch))
            if flight is None:
                return None
            try:
                async with asyncio.timeout(plan.remaining_s):
                    await flight.ended.wait()
            except TimeoutError:
                raise DeadlineExceeded from None
            if flight.made is not None and datetime.now(UTC) < _end_of(plan.scope.holds_until, flight.made):
                return flight.made
        return None

    def _keep(self, key: Key, epoch: int, holds_until: datetime, made: Made) -> None:
        kept = self._kept.get(key)
        if kept is not None and kept.epoch > epoch:
            return
        # What it takes in memory is a small multiple of this.
        size = len(made.answer.model_dump_json().encode())
        if size > self._most_bytes:
            return
        self._drop(key)
        self._kept[key] = _Kept(made, epoch, monotonic() + self._ttl_s, _end_of(holds_until, made), size)
        self._bytes += size
        while len(self._kept) > self._most_answers or self._bytes > self._most_bytes:
            self._drop(next(iter(self._kept)))
        self._sweep_later()

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.size

    def _sweep_later(self) -> None:
        """What is over its time leaves memory also when nobody asks any more: it may have been erased since."""
        if self._sweep is None and self._kept:
            first = min(kept.ends for kept in self._kept.values())
            self._sweep = asyncio.get_running_loop().call_later(max(first - monotonic(), 0.0), self._swept)

    def _swept(self) -> None:
        self._sweep = None
        now = monotonic()
        for key in [key for key, kept in self._kept.items() if kept.ends <= now]:
            self._drop(key)
        self._sweep_later()


def key_of(plan: Plan) -> Key:
    """Everything that an answer depends on but the state of the tenant: who asks, from where, and the whole query.

    A principal that is given another field is told apart by it, unless it is named in ``NOT_BY_VALUE``. When the next of the tenant's
    policies ends is a part of it, since who asks after that sees less in the same epoch.
    """
    principal, scope = plan.scope.principal, plan.scope
    who = [getattr(principal, told.name) for told in fields(Principal) if told.name not in NOT_BY_VALUE]
    query = hashlib.sha256(plan.query.model_dump_json().encode()).digest()
    kind = principal.key_id if principal.key_id in {LOCAL_KEY_ID, OIDC_KEY_ID} else API_KEY
    return (*who, kind, scope.organization_id, scope.assessment_id, scope.holds_until, plan.model, query)


def _end_of(holds_until: datetime, made: Made) -> datetime:
    return holds_until if made.until is None else min(holds_until, made.until)
