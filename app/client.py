"""The Python client: the same operations as REST, typed. Errors come back as the errors of ``graph.model.errors``."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx2
import orjson

from graph.model.answer import ContextAnswer, Lineage
from graph.model.base import errors_by_code
from graph.model.errors import LastroError, Unavailable, Where
from graph.model.keys import CreatedKey, KeyList, KeyRequest
from graph.model.query import ContextQuery
from graph.model.units import ContextUnit, UnitPage, WriteResult

TIMEOUT_S = 60.0


class LastroClient:
    """Speaks to a Lastro service. Use it as an async context manager.

    ``session_id``, ``model``, ``organization_id`` and ``assessment_id`` are sent with every request.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        session_id: str | None = None,
        model: str | None = None,
        organization_id: str | None = None,
        assessment_id: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        headers = {
            "Authorization": f"Bearer {key}",
            "Lastro-Session": session_id,
            "Lastro-Model": model,
            "Lastro-Organization": organization_id,
            "Lastro-Assessment": assessment_id,
        }
        self._http = httpx2.AsyncClient(
            base_url=url.rstrip("/"), headers={name: value for name, value in headers.items() if value is not None}, timeout=timeout_s
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._http.aclose()

    async def write(self, units: Sequence[ContextUnit], *, model: str | None = None) -> WriteResult:
        """Store a batch whole. Safe to repeat. ``model`` is the one that the units came from, if not the client's own."""
        batch = orjson.dumps({"units": [unit.model_dump(mode="json", exclude_defaults=True) for unit in units]})
        return WriteResult.model_validate_json(await self._call("POST", "/v1/units", content=batch, model=model))

    async def read(self, unit_id: str) -> ContextUnit:
        """One unit."""
        return ContextUnit.model_validate_json(await self._call("GET", _address(unit_id)))

    async def list_units(
        self, *, session_id: str | None = None, task_id: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> UnitPage:
        """A page of units, newest first."""
        asked = {"session_id": session_id, "task_id": task_id, "limit": str(limit), "cursor": cursor}
        answer = await self._call("GET", "/v1/units", params={name: value for name, value in asked.items() if value is not None})
        return UnitPage.model_validate_json(answer)

    async def lineage(self, unit_id: str, *, direction: str = "both", depth: int = 3) -> Lineage:
        """What a unit came from (before) and what came from it (after)."""
        path = f"{_address(unit_id)}/lineage"
        return Lineage.model_validate_json(await self._call("GET", path, params={"direction": direction, "depth": str(depth)}))

    async def context(self, query: ContextQuery) -> ContextAnswer:
        """The context for a task, step, unit or session."""
        content = query.model_dump_json(exclude_defaults=True).encode()
        return ContextAnswer.model_validate_json(await self._call("POST", "/v1/context", content=content))

    async def create_key(self, asked: KeyRequest) -> CreatedKey:
        """Make a key of the tenant; for admins."""
        content = asked.model_dump_json(exclude_defaults=True).encode()
        return CreatedKey.model_validate_json(await self._call("POST", "/v1/keys", content=content))

    async def list_keys(self) -> KeyList:
        """The tenant's keys; for admins."""
        return KeyList.model_validate_json(await self._call("GET", "/v1/keys"))

    async def revoke_key(self, key_id: str) -> None:
        """Revoke a key of the tenant; for admins."""
        await self._call("DELETE", f"/v1/keys/{quote(key_id, safe='')}")

    async def _call(
        self, method: str, path: str, *, params: dict[str, str] | None = None, content: bytes | None = None, model: str | None = None
    ) -> bytes:
        headers = {"Content-Type": "application/json"} if content is not None else {}
        if model is not None:
            headers["Lastro-Model"] = model
        try:
            response = await self._http.request(method, path, params=params, content=content, headers=headers)
        except httpx2.TransportError as failure:
            raise Unavailable(
                f"The service does not answer ({type(failure).__name__}).", hint="Check LASTRO_URL, and that it runs."
            ) from None
        if response.is_success:
            return response.content
        raise _error_of(response)


def _address(unit_id: str) -> str:
    """Where a unit is. Dots are escaped too: an id may be ``..``, which would otherwise be taken for the folder above."""
    return "/v1/units/" + quote(unit_id, safe="").replace(".", "%2E")


def _error_of(response: httpx2.Response) -> LastroError:
    try:
        told: Any = orjson.loads(response.content)
        cls = errors_by_code().get(told["code"], LastroError)
        error = cls(told["title"], hint=told["hint"])
        if "where" in told:
            error.where = Where(**told["where"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return LastroError(f"The service answered {response.status_code} without saying why.", hint="Is LASTRO_URL a Lastro service?")
    return error
