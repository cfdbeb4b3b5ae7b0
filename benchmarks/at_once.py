"""Many clients at once with the deadline that a query has by default: what each got, when, and how it was marked."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from benchmarks.measuring import Figure, OnProgress, at_most, percentile, plain
from benchmarks.service import Door

CLIENTS = 32
QUERIES_EACH = 12
DEADLINE_MS = 500
NOT_IN_TIME = ("time", "still being loaded", "after its deadline")
"""Words of the notes by which a receipt says that something is missing since there was no time for it."""

Query = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Got:
    """One answer as it came."""

    status: int
    took_s: float
    """By the client's clock, from before the request was sent until the last byte was there."""
    body: bytes


def ask_at_once(port: int, key: str, queries: Sequence[Sequence[Query]], on_progress: OnProgress) -> list[Got]:
    """Each client asks its queries one after another on a connection of its own; all begin at the same moment."""
    found: list[Got] = []
    start = threading.Barrier(len(queries))
    total = sum(map(len, queries))

    def client(mine: Sequence[Query]) -> None:
        door = Door(port, key)
        bodies = [orjson.dumps({**query, "deadline_ms": DEADLINE_MS}) for query in mine]
        start.wait()
        for body in bodies:
            began = time.perf_counter()
            status, answer = door.asked("/v1/context", body)
            # Answers are parsed when all are there: 32 clients that parse would wait for each other here.
            found.append(Got(status, time.perf_counter() - began, answer))
        door.close()

    threads = [threading.Thread(target=client, args=(mine,), name=f"client {number}") for number, mine in enumerate(queries)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.5)
            on_progress(f"{len(queries)} clients at once", len(found), total)
    return found


def is_marked(receipt: Mapping[str, Any]) -> bool:
    """Whether a receipt says that this is not all that the first strategy would have given."""
    return (
        bool(receipt["fallback"])
        or any(attempt["outcome"] != "answered" for attempt in receipt["attempts"])
        or any(word in note for note in receipt["notes"] for word in NOT_IN_TIME)
    )


def _code(got: Got) -> str:
    return str(orjson.loads(got.body).get("code", "")) if got.body.startswith(b"{") else ""


def figures(benchmark: str, engine: str, found: Sequence[Got]) -> list[Figure]:
    """Counts, and the two that must be zero."""
    receipts = [(got, orjson.loads(got.body)) for got in found if got.status == HTTPStatus.OK]
    refused = Counter(f"{got.status} {_code(got)}" for got in found if got.status != HTTPStatus.OK)
    late_s = DEADLINE_MS / 1000
    unmarked = [(got, answer) for got, answer in receipts if not is_marked(answer["receipt"])]
    by_client = [got for got, _ in unmarked if got.took_s > late_s]
    by_service = [answer for _, answer in unmarked if answer["receipt"]["timings_ms"]["total"] > DEADLINE_MS]
    empty = [answer for _, answer in receipts if not answer["units"]]
    named = f"{CLIENTS} clients at once"
    told = [
        plain(benchmark, engine, f"{named}: queries", len(found), ""),
        plain(benchmark, engine, f"{named}: answered", len(receipts), ""),
        plain(benchmark, engine, f"{named}: answered, and marked as fallback or partial", len(receipts) - len(unmarked), ""),
        *(plain(benchmark, engine, f"{named}: refused, {code}", count, "") for code, count in sorted(refused.items())),
    ]
    for share in (0.5, 0.95, 1.0):
        label = "longest" if share == 1.0 else f"p{share * 100:.0f}"
        told.append(
            plain(benchmark, engine, f"{named}: {label}, client's clock", percentile([got.took_s for got in found], share) * 1000, "ms")
        )
        if receipts:
            own = [answer["receipt"]["timings_ms"]["total"] for _, answer in receipts]
            told.append(plain(benchmark, engine, f"{named}: {label}, service's clock", percentile(own, share), "ms"))
    return [
        *told,
        at_most(plain(benchmark, engine, f"{named}: after {DEADLINE_MS} ms by the client's clock and not marked", len(by_client), ""), 0),
        at_most(plain(benchmark, engine, f"{named}: the same by the service's clock", len(by_service), ""), 0),
        at_most(plain(benchmark, engine, f"{named}: empty answers", len(empty), ""), 0),
    ]
