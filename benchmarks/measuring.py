"""How figures are made: medians and percentiles of interleaved samples, and what each is compared with."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol, TypeVar

__all__ = ["Clock", "Figure", "OnProgress", "Samples", "at_least", "at_most", "load_average", "median", "percentile", "plain", "rotated"]

Item = TypeVar("Item")


class OnProgress(Protocol):
    """Told what is being done, and how much of it."""

    def __call__(self, what: str, done: int, total: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. ``met`` is None when nothing was aimed at."""

    benchmark: str
    engine: str
    name: str
    value: float
    unit: str
    target: str = ""
    met: bool | None = None


def plain(benchmark: str, engine: str, name: str, value: float, unit: str) -> Figure:
    """A figure without a target."""
    return Figure(benchmark, engine, name, round(value, 3), unit)


def at_least(figure: Figure, target: float) -> Figure:
    """The figure with a lower bound as its target."""
    return Figure(
        figure.benchmark, figure.engine, figure.name, figure.value, figure.unit, f">= {target:g} {figure.unit}", figure.value >= target
    )


def at_most(figure: Figure, target: float) -> Figure:
    """The figure with an upper bound as its target."""
    return Figure(
        figure.benchmark, figure.engine, figure.name, figure.value, figure.unit, f"<= {target:g} {figure.unit}", figure.value <= target
    )


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which ``share`` (0 to 1) of the values lie, linear between neighbours (as numpy's default).

    Raises:
        ValueError: there are no values, or ``share`` is not within 0 to 1.
    """
    ordered = sorted(values)
    if not ordered or not 0 <= share <= 1:
        raise ValueError("a percentile needs values and a share of 0 to 1")
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def load_average() -> float:
    """Processes that wanted a core in the last minute; over 2 on this machine, timings are upper bounds."""
    return round(os.getloadavg()[0], 2)


@dataclass(slots=True)
class Samples:
    """Times by what was done, s."""

    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, what: str, seconds: float) -> None:
        self.seconds.setdefault(what, []).append(seconds)

    def last(self, what: str) -> float:
        """The newest of them, s."""
        return self.seconds[what][-1]

    def ms(self, what: str, share: float = 0.5) -> float:
        """A percentile in ms."""
        return percentile(self.seconds[what], share) * 1000

    def paired_ratio(self, a: str, b: str) -> float:
        """The median of a/b over the rounds in which both were measured, so that what disturbs a round disturbs both."""
        return median(x / y for x, y in zip(self.seconds[a], self.seconds[b], strict=True))


class Clock:
    """The time of one call, s."""

    @staticmethod
    def of(work: Callable[[], object]) -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began


def rotated(items: Sequence[Item], by: int) -> list[Item]:
    """The items from the ``by``-th on, then those before: each is first equally often over the rounds."""
    start = by % len(items)
    return [*items[start:], *items[:start]]
