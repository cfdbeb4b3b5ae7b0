"""What the registry asks of whoever checks tokens. Loads nothing, so that a service without OIDC pays nothing for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from graph.model.scope import Role
from graph.model.units import Scope


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """Who a token says is asking, after everything about it was checked."""

    tenant_id: str
    agent_id: str
    role: Role
    bound: Scope
    """Organisation and assessment that the token is kept within, if any."""
    session_id: str | None
    """The only session that the token may name, if any."""


class Tokens(Protocol):
    """Checks the tokens of an issuer."""

    @property
    def creates_tenants(self) -> bool:
        """Whether a token may name a tenant that does not exist yet; its first write makes it."""
        ...

    async def verify(self, authorization: str | None) -> TokenIdentity:
        """Who is asking, from an Authorization header.

        Raises:
            Unauthenticated: the same for whatever is wrong with the token.
            IssuerUnavailable: the issuer's keys are needed and cannot be had now.
        """
        ...
