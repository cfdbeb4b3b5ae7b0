"""SQL on the embedded engine, by HTTP: for what its Cypher cannot say, above all the making of its own indexes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx2

from graph.engines.base import Address
from graph.model.errors import EngineFailure


class SqlDoor:
    """Sends SQL commands to the database at an address."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._http: httpx2.AsyncClient | None = None

    async def run(self, command: str, deadline_s: float = 30.0, params: Mapping[str, object] | None = None) -> list[dict[str, object]]:
        """Rows of one command, all of them or an error. ``params``: values for ``:name`` in it.

        Raises:
            EngineFailure: the engine has no such door, refuses the command, or is not done within ``deadline_s`` seconds; the command then
                stops, as its connection closes.
        """
        if self._address.http_uri is None:
            raise EngineFailure("This engine knows no SQL.")
        if self._http is None:
            self._http = httpx2.AsyncClient(
                base_url=self._address.http_uri,
                auth=(self._address.user, self._address.password),
                timeout=None,  # one deadline for the whole call, below
                trust_env=False,  # a proxy has no business between a process and its child
            )
        body: dict[str, object] = {"language": "sql", "command": command}
        if params:
            body["params"] = dict(params)
        try:
            async with asyncio.timeout(deadline_s):
                answer = await self._http.post(f"/api/v1/command/{self._address.database}", json=body)
        except TimeoutError:
            raise EngineFailure(f"A command on the embedded engine was not done within {deadline_s:g} s.") from None
        except httpx2.HTTPError as unanswered:
            raise EngineFailure("The embedded engine does not answer by HTTP.") from unanswered
        said: Any = answer.json() if answer.headers.get("content-type", "").startswith("application/json") else {}
        if not answer.is_success:
            raise EngineFailure(f"The embedded engine refused a command: HTTP {answer.status_code}, {said.get('exception', 'no reason')}.")
        if said.get("truncated"):
            raise EngineFailure("The answer of the embedded engine was cut short.", hint="Add a LIMIT to the command.")
        return said["result"]

    async def close(self) -> None:
        """Close its connection; the next command opens another."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None
