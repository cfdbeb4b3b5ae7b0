"""What every engine answers: where it is, whether it lives, and whether it came back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database answers and how to log in."""

    uri: str
    """``bolt://127.0.0.1:PORT``, or a ``neo4j://``, ``neo4j+s://`` … URI that was given."""
    user: str
    password: str = field(repr=False)
    database: str | None
    """None: the server's default."""
    http_uri: str | None = None
    """Embedded engine only: the root (``http://127.0.0.1:PORT``) below which SQL commands go."""


class Engine(Protocol):
    """A database that the service can use and, when it owns it, starts and stops."""

    @property
    def name(self) -> str:
        """``embedded``, ``neo4j`` or ``local-neo4j``."""
        ...

    async def start(self) -> Address:
        """Make it answer; the same address when it already does. Raises a subclass of ``EngineFailure``."""
        ...

    async def stop(self) -> None:
        """Let go of it; the second call, or one for a child that has gone, does nothing."""
        ...

    @property
    def alive(self) -> bool:
        """Whether the owned child runs and was ready; a given server counts as alive."""
        ...

    async def restarted(self) -> bool:
        """Whether it came back since the last call, waiting for a restart that is going on.

        True is said once for all restarts so far, to one caller: the one that warms statements again.
        """
        ...

    async def sql(self, command: str, deadline_s: float = 30.0) -> list[dict[str, object]]:
        """Rows of one SQL command on ArcadeDB, within ``deadline_s`` seconds. Raises ``EngineFailure`` elsewhere or when it fails."""
        ...
