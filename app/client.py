"""The Python client: the same operations as REST, typed. Errors come back as the errors of ``graph.model.errors``."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx2
import orjson

from graph.model.answer import ContextAnswer, Lineage
from graph.model.attachments import StoredAttachment
from graph.model.audit import AuditEvent, AuditPage, AuditQuery
from graph.model.base import MAX_SHORT_TEXT_CHARACTERS, errors_by_code, parse
from graph.model.erasure import ErasureCertificate, ErasureLine, ErasureProgress, Refuses, TenantErasure
from graph.model.errors import AttachmentDamaged, InvalidField, LastroError, QuotaExceeded, Unavailable, Where
from graph.model.keys import CreatedKey, KeyList, KeyRequest, RotationRequest
from graph.model.ledger import LedgerPage, LedgerQuery
from graph.model.policy import Explanation, Policy, PolicyList, PolicyRequest, Team, TeamList
from graph.model.query import ContextQuery
from graph.model.quota import QuotaLimits, QuotaList, QuotaView, Subject, UsagePage, UsageQuery
from graph.model.retention import Retention, RetentionReport, RetentionRun
from graph.model.scope import Role
from graph.model.units import ContextUnit, Scope, UnitPage, WriteResult

TIMEOUT_S = 60.0
ATTACHMENT_TIMEOUT_S = 150.0
"""More than the service gives an original to arrive."""


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

    async def rotate_key(self, key_id: str, asked: RotationRequest) -> CreatedKey:
        """Make a key that takes the place of another, which goes on for the overlap; for admins."""
        content = asked.model_dump_json(exclude_defaults=True).encode()
        return CreatedKey.model_validate_json(await self._call("POST", f"/v1/keys/{quote(key_id, safe='')}/rotate", content=content))

    async def revoke_key(self, key_id: str) -> None:
        """Revoke a key of the tenant; for admins."""
        await self._call("DELETE", f"/v1/keys/{quote(key_id, safe='')}")

    async def create_policy(self, asked: PolicyRequest) -> Policy:
        """Put a policy in force; for admins."""
        content = asked.model_dump_json(exclude_defaults=True).encode()
        return Policy.model_validate_json(await self._call("POST", "/v1/policies", content=content))

    async def list_policies(self) -> PolicyList:
        """The tenant's policies, newest first; for admins."""
        return PolicyList.model_validate_json(await self._call("GET", "/v1/policies"))

    async def revoke_policy(self, policy_id: str, reason: str | None = None) -> None:
        """End a policy; for admins."""
        await self._call("DELETE", f"/v1/policies/{quote(policy_id, safe='')}", params=_given(reason=reason))

    async def explain(self, unit_id: str, agent_id: str, session_id: str | None, place: Scope, role: Role) -> Explanation:
        """Why a reader can or cannot see a unit; for admins."""
        params = _given(
            unit_id=unit_id,
            agent_id=agent_id,
            session_id=session_id,
            organization_id=place.organization_id,
            assessment_id=place.assessment_id,
            role=role.value,
        )
        return Explanation.model_validate_json(await self._call("GET", "/v1/policies/explain", params=params))

    async def list_teams(self) -> TeamList:
        """The tenant's teams; for admins."""
        return TeamList.model_validate_json(await self._call("GET", "/v1/teams"))

    async def save_team(self, team: Team) -> Team:
        """Make a team, or say anew who is in it; for admins."""
        return Team.model_validate_json(await self._call("PUT", "/v1/teams", content=team.model_dump_json().encode()))

    async def remove_team(self, team_id: str) -> None:
        """Take a team away; for admins."""
        await self._call("DELETE", f"/v1/teams/{quote(team_id, safe='')}")

    async def list_quotas(self) -> QuotaList:
        """The tenant's quotas, with what remains of them; for admins."""
        return QuotaList.model_validate_json(await self._call("GET", "/v1/quotas"))

    async def set_quota(self, subject: Subject, limits: QuotaLimits, *, reason: str | None = None) -> QuotaView:
        """Set all limits of a subject; for admins."""
        content = limits.model_dump_json(exclude_defaults=True).encode()
        return QuotaView.model_validate_json(
            await self._call("PUT", _quota_address(subject), params=_given(reason=reason), content=content)
        )

    async def remove_quota(self, subject: Subject, *, reason: str | None = None) -> None:
        """Remove all limits of a subject; for admins."""
        await self._call("DELETE", _quota_address(subject), params=_given(reason=reason))

    async def usage(self, query: UsageQuery, *, limit: int = 50, cursor: str | None = None) -> UsagePage:
        """A page of who used what; for admins and analysts."""
        params = _given(
            subject_type=query.subject_type,
            subject_id=query.subject_id,
            since=query.since,
            until=query.until,
            by=query.by,
            limit=limit,
            cursor=cursor,
        )
        return UsagePage.model_validate_json(await self._call("GET", "/v1/usage", params=params))

    async def ledger(self, query: LedgerQuery, *, limit: int = 50, cursor: str | None = None) -> LedgerPage:
        """A page of what context answers cost: the tenant's for admins, the key's own agent's for others."""
        params = {
            **_given(to=query.until, agent_id=query.agent_id, task_id=query.task_id, model=query.model, limit=limit, cursor=cursor),
            **({} if query.since is None else {"from": query.since.isoformat()}),
            "group_by": ",".join(query.group_by),
        }
        return LedgerPage.model_validate_json(await self._call("GET", "/v1/ledger", params=params))

    async def own_quotas(self) -> QuotaList:
        """The quotas that hold for this key, with what remains."""
        return QuotaList.model_validate_json(await self._call("GET", "/v1/usage/me"))

    async def audit(self, query: AuditQuery, *, limit: int = 50, cursor: str | None = None) -> AuditPage:
        """A page of the audit trail, newest first; for admins."""
        params = {**_audit_params(query), **_given(limit=limit, cursor=cursor)}
        return AuditPage.model_validate_json(await self._call("GET", "/v1/audit", params=params))

    async def export_audit(self, query: AuditQuery) -> AsyncIterator[AuditEvent]:
        """All events, newest first, as they come; for admins. One that breaks off raises Unavailable."""
        try:
            async with self._http.stream("GET", "/v1/audit/export", params=_audit_params(query)) as response:
                if not response.is_success:
                    await response.aread()
                    raise _error_of(response)
                rest = b""
                # Not by text lines: these would also end at characters that a reason may hold.
                async for piece in response.aiter_bytes():
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        yield AuditEvent.model_validate_json(line)
        except httpx2.TransportError as failure:
            raise _silent(failure) from None

    async def put_attachment(self, sha256: str, media_type: str, body: AsyncIterator[bytes]) -> StoredAttachment:
        """Store the original of an attachment, under the SHA-256 of its bytes."""
        address = f"/v1/attachments/{quote(sha256, safe='')}"
        try:
            response = await self._http.put(address, content=body, headers={"Content-Type": media_type}, timeout=ATTACHMENT_TIMEOUT_S)
        except httpx2.TransportError as failure:
            raise _silent(failure) from None
        if not response.is_success:
            raise _error_of(response)
        return StoredAttachment.model_validate_json(response.content)

    async def get_attachment(self, sha256: str) -> AsyncIterator[bytes]:
        """The original of an attachment, piece by piece, compared with its digest: a damaged one raises AttachmentDamaged at its end."""
        digest = hashlib.sha256()
        try:
            async with self._http.stream("GET", f"/v1/attachments/{quote(sha256, safe='')}", timeout=ATTACHMENT_TIMEOUT_S) as response:
                if not response.is_success:
                    await response.aread()
                    raise _error_of(response)
                async for piece in response.aiter_bytes():
                    digest.update(piece)
                    yield piece
        except httpx2.TransportError as failure:
            raise _silent(failure) from None
        if digest.hexdigest() != sha256:
            raise AttachmentDamaged

    async def erase(self, unit_id: str, *, reason: str | None = None, refuses: Refuses = Refuses.VALUE) -> str:
        """Erase a unit; the id of its tombstone, which the audit trail names it by. For admins, and for agents what they wrote."""
        answer = await self._answer("DELETE", _address(unit_id), params=_given(reason=reason, refuse=refuses.value))
        return answer.headers["lastro-tombstone"]

    async def erase_tenant(
        self, asked: TenantErasure, on_progress: Callable[[ErasureProgress], None] = lambda _: None
    ) -> ErasureCertificate:
        """Erase the whole tenant of the key, which then stops working; for admins. Going on with one that was begun is the same call."""
        content = asked.model_dump_json(exclude_defaults=True).encode()
        try:
            async with self._http.stream("DELETE", "/v1/tenant", content=content, headers={"Content-Type": "application/json"}) as response:
                if not response.is_success:
                    await response.aread()
                    raise _error_of(response)
                async for text in response.aiter_lines():
                    line = parse(ErasureLine, text)
                    if line.progress is not None:
                        on_progress(line.progress)
                    if line.certificate is not None:
                        return line.certificate
                    if line.problem is not None:
                        raise errors_by_code().get(line.problem["code"], LastroError)(line.problem["title"], hint=line.problem["hint"])
        except httpx2.TransportError as failure:
            raise _silent(failure) from None
        raise Unavailable("The service went away before the erasure was through.", hint="Run it again: it goes on where it was.")

    async def retention(self) -> Retention:
        """The tenant's rules of retention; for admins."""
        return Retention.model_validate_json(await self._call("GET", "/v1/retention"))

    async def set_retention(self, rules: Retention, *, reason: str | None = None) -> Retention:
        """Put rules in the place of those before; for admins."""
        content = rules.model_dump_json().encode()
        return Retention.model_validate_json(await self._call("PUT", "/v1/retention", params=_given(reason=reason), content=content))

    async def run_retention(self, *, dry_run: bool = False) -> RetentionReport:
        """Apply the rules now, or count what that would erase; for admins."""
        content = RetentionRun(dry_run=dry_run).model_dump_json().encode()
        return RetentionReport.model_validate_json(await self._call("POST", "/v1/retention/run", content=content))

    async def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | list[str]] | None = None,
        content: bytes | None = None,
        model: str | None = None,
    ) -> bytes:
        return (await self._answer(method, path, params=params, content=content, model=model)).content

    async def _answer(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | list[str]] | None = None,
        content: bytes | None = None,
        model: str | None = None,
    ) -> httpx2.Response:
        headers = {"Content-Type": "application/json"} if content is not None else {}
        if model is not None:
            if not fits_header(model):
                raise InvalidField("No header can hold this model's name.", hint="Name it in ASCII, up to 512 characters.").at(
                    field="model"
                )
            headers["Lastro-Model"] = model
        try:
            response = await self._http.request(method, path, params=params, content=content, headers=headers)
        except httpx2.TransportError as failure:
            raise _silent(failure) from None
        if response.is_success:
            return response
        raise _error_of(response)


def fits_header(value: str) -> bool:
    """Whether the service is sent this value as it is: visible ASCII, without blanks at its ends, and no longer than it keeps."""
    return value.isascii() and value.isprintable() and value == value.strip() and len(value) <= MAX_SHORT_TEXT_CHARACTERS


def _address(unit_id: str) -> str:
    """Where a unit is. Dots are escaped too: an id may be ``..``, which would otherwise be taken for the folder above."""
    return "/v1/units/" + quote(unit_id, safe="").replace(".", "%2E")


def _quota_address(subject: Subject) -> str:
    return f"/v1/quotas/{subject.type}/" + quote(subject.id, safe="").replace(".", "%2E")


def _audit_params(query: AuditQuery) -> dict[str, str | list[str]]:
    return {"action": [action.value for action in query.actions], **_given(since=query.since, until=query.until)}


def _given(**params: object) -> dict[str, str]:
    """Parameters that were given, as texts."""
    return {name: value.isoformat() if isinstance(value, datetime) else str(value) for name, value in params.items() if value is not None}


def _silent(failure: httpx2.TransportError) -> Unavailable:
    return Unavailable(f"The service does not answer ({type(failure).__name__}).", hint="Check LASTRO_URL, and that it runs.")


def _error_of(response: httpx2.Response) -> LastroError:
    try:
        told: Any = orjson.loads(response.content)
        cls = errors_by_code().get(told["code"], LastroError)
        error = cls(told["title"], hint=told["hint"])
        if "where" in told:
            error.where = Where(**told["where"])
        if isinstance(error, QuotaExceeded):
            error.quota = dict(told["quota"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return LastroError(f"The service answered {response.status_code} without saying why.", hint="Is LASTRO_URL a Lastro service?")
    return error
