"""Tokens of an OIDC issuer as credentials: a JWT says who is asking when its issuer, audience, times and signature are right.

Imported only where an issuer is set: cryptography is not cheap to load.
"""

from __future__ import annotations

import base64
import math
import re
import time
from collections.abc import Mapping
from typing import Any, cast

import jwt
import orjson

from app.registry.issuer_keys import IssuerKeys, IssuerSource
from app.registry.oidc_rules import algorithms_of
from app.registry.tokens import TokenIdentity
from app.settings import Settings
from graph.model.base import check_id
from graph.model.errors import Unauthenticated
from graph.model.scope import RESERVED_PREFIX, Role
from graph.model.units import Scope

MOST_CHARACTERS = 16_384
"""Of a token. Those of large identity providers have 1,000 to 4,000."""
MOST_KEY_ID_CHARACTERS = 512
LATEST_TIME = 253_402_300_800.0
"""1 January 10000, in seconds since 1970: no time of a token is later, and arithmetic with it does not overflow."""
COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class OidcTokens:
    """Checks the tokens of the issuer that the settings name."""

    def __init__(self, settings: Settings) -> None:
        """``oidc_issuer`` and ``oidc_audience`` are set; the settings have been checked."""
        assert settings.oidc_issuer is not None
        assert settings.oidc_audience is not None
        self._settings = settings
        self._issuer = settings.oidc_issuer
        self._audience = settings.oidc_audience
        self._algorithms = frozenset(algorithms_of(settings.oidc_algorithms))
        self._keys = IssuerKeys(
            IssuerSource(
                issuer=settings.oidc_issuer,
                plain_http=settings.oidc_allow_http,
                ca_file=settings.oidc_ca_file,
                refresh_s=settings.oidc_keys_refresh_s,
                usable_s=settings.oidc_keys_usable_s,
                refetch_s=settings.oidc_refetch_s,
                most_waiting=max(1, settings.max_concurrent_requests // 2),
            )
        )

    @property
    def creates_tenants(self) -> bool:
        """Whether a token may name a tenant that does not exist yet."""
        return self._settings.oidc_create_tenants

    async def close(self) -> None:
        """Let go of the issuer."""
        await self._keys.close()

    async def verify(self, authorization: str | None) -> TokenIdentity:
        """Who is asking.

        Raises:
            Unauthenticated: the same for whatever is wrong with the token.
            IssuerUnavailable: the issuer's keys are needed and cannot be had now.
        """
        token = _token_of(authorization)
        head, body, _ = token.split(".")
        key_id, algorithm = self._announced(_parsed(head))
        # Looked at before the signature is: what would be refused anyway must not make us ask the issuer for its keys.
        self._expected(_parsed(body))
        key = await self._keys.find(key_id, algorithm)
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key=key,
                algorithms=[algorithm],
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._settings.oidc_clock_skew_s,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, RecursionError):
            raise Unauthenticated from None
        return self._identity(claims)

    def _announced(self, header: Mapping[str, Any]) -> tuple[str, str]:
        """Key id and algorithm. Whatever else a header offers (a key, an address of keys) is not read; what it calls critical is not known."""
        key_id, algorithm = header.get("kid"), header.get("alg")
        if not isinstance(key_id, str) or not 1 <= len(key_id) <= MOST_KEY_ID_CHARACTERS or "crit" in header:
            raise Unauthenticated
        if not isinstance(algorithm, str) or algorithm not in self._algorithms:
            raise Unauthenticated
        return key_id, algorithm

    def _expected(self, claims: Mapping[str, Any]) -> None:
        """Issuer, audience and times, before the signature says whether they can be believed."""
        audience = claims.get("aud")
        named: list[object] = cast("list[object]", audience) if isinstance(audience, list) else [audience]
        if claims.get("iss") != self._issuer or self._audience not in named:
            raise Unauthenticated
        now, skew = time.time(), self._settings.oidc_clock_skew_s
        if _time_of(claims, "exp") <= now - skew:
            raise Unauthenticated
        for name in ("nbf", "iat"):
            if name in claims and _time_of(claims, name) > now + skew:
                raise Unauthenticated

    def _identity(self, claims: Mapping[str, Any]) -> TokenIdentity:
        settings = self._settings
        tenant_id = _id_of(claims, settings.oidc_tenant_claim)
        role = claims.get(settings.oidc_role_claim)
        if tenant_id.startswith(RESERVED_PREFIX) or not isinstance(role, str) or role not in set(Role):
            raise Unauthenticated
        return TokenIdentity(
            tenant_id=tenant_id,
            agent_id=_id_of(claims, settings.oidc_agent_claim),
            role=Role(role),
            bound=Scope(
                organization_id=_bound_of(claims, settings.oidc_organization_claim),
                assessment_id=_bound_of(claims, settings.oidc_assessment_claim),
            ),
            session_id=_bound_of(claims, settings.oidc_session_claim),
        )


def _token_of(authorization: str | None) -> str:
    scheme, _, value = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or len(value) > MOST_CHARACTERS or COMPACT.fullmatch(token := value.strip()) is None:
        raise Unauthenticated
    return token


def _parsed(part: str) -> dict[str, Any]:
    try:
        told: object = orjson.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        raise Unauthenticated from None
    if not isinstance(told, dict):
        raise Unauthenticated
    return cast("dict[str, Any]", told)


def _time_of(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value < LATEST_TIME:
        raise Unauthenticated
    return float(value)


def _id_of(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    try:
        return check_id(value) if isinstance(value, str) else _refuse()
    except ValueError:
        raise Unauthenticated from None


def _bound_of(claims: Mapping[str, Any], name: str | None) -> str | None:
    """A claim that keeps the token within something. Absent, it does not; there and not an id (null too), the token is refused: taking it for
    absent would open what it was meant to close.
    """
    return None if name is None or name not in claims else _id_of(claims, name)


def _refuse() -> str:
    raise Unauthenticated
