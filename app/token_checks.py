"""What `lastro tokens --verify` found: one line for each check in a file of the data folder. It holds numbers and a model's name, and no content."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from adapters.counting import CountedRequest
from graph.model.answer import CountMethod
from graph.model.base import Model, Timestamp

FILE = "token-checks.jsonl"
_MOST_READ = 256 * 1024
"""Bytes read from the end: about a thousand checks."""


class TokenCheck(Model):
    """Our count beside the vendor's own, in tokens."""

    at: Timestamp
    model: str
    api: str
    method: CountMethod
    counted: int
    low: int
    high: int
    vendor: int

    @property
    def difference(self) -> int:
        """Ours less the vendor's."""
        return self.counted - self.vendor

    @property
    def within(self) -> bool:
        return self.low <= self.vendor <= self.high


def record(folder: Path, model: str, counted: CountedRequest, vendor: int) -> TokenCheck:
    """Keep a check. Raises OSError when the folder cannot be written."""
    tokens = counted.tokens
    check = TokenCheck(
        at=datetime.now(UTC),
        model=model,
        api=counted.api,
        method=tokens.method,
        counted=tokens.value,
        low=tokens.low,
        high=tokens.high,
        vendor=vendor,
    )
    folder.mkdir(parents=True, exist_ok=True)
    # One write of a whole line at the end: checks of two commands at once do not mix.
    handle = os.open(folder / FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, check.model_dump_json().encode() + b"\n")
    finally:
        os.close(handle)
    return check


def checks(folder: Path) -> list[TokenCheck]:
    """The newest checks, oldest first; lines that are damaged are left out, and a missing file holds none."""
    try:
        with (folder / FILE).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _MOST_READ, 0))
            lines = file.read().splitlines()
    except OSError:
        return []
    found: list[TokenCheck] = []
    for line in lines:
        try:
            found.append(TokenCheck.model_validate_json(line))
        except ValidationError:
            continue
    return found


def summary(found: list[TokenCheck]) -> str:
    """One line for people."""
    if not found:
        return "none checked with a vendor's own counter; `lastro tokens FILE --model M --verify` does"
    outside = sum(not check.within for check in found)
    worst = max(found, key=lambda check: abs(check.difference) / max(check.vendor, 1))
    share = 100 * abs(worst.difference) / max(worst.vendor, 1)
    return f"{len(found)} checked, {outside} outside of the bounds told; worst {share:.1f} % ({worst.model})"
