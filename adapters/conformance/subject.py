"""What is under test: how to make the adapter, and the model it is asked to speak to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from adapters.base import Adapter
from adapters.tokenizers import Tokenizers


@dataclass(frozen=True, slots=True)
class Subject:
    """An adapter under test. ``make`` is called more than once: two adapters made alike must say the same bytes."""

    make: Callable[[], Adapter]
    model: str
    tokenizers: Tokenizers = field(default_factory=Tokenizers)
    """Counts again what the adapter counted."""
