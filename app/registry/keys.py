"""API keys as texts: made once, shown once, compared by hash."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

KEY = re.compile(r"^lastro_([0-9a-f]{16})_([A-Za-z0-9_-]{43})$")
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class KeyText:
    """The two halves of a key: ``id`` finds it, ``secret`` proves it."""

    id: str
    secret: str = field(repr=False)

    def __str__(self) -> str:
        return f"lastro_{self.id}_{self.secret}"


def new_key() -> KeyText:
    """A fresh key with 256 random bits."""
    return KeyText(secrets.token_hex(8), secrets.token_urlsafe(SECRET_BYTES))


def parse_bearer(authorization: str | None) -> KeyText | None:
    """The key of an Authorization header, or None when there is none of our form."""
    scheme, _, value = (authorization or "").partition(" ")
    match = KEY.match(value.strip()) if scheme.lower() == "bearer" and len(value) < 256 else None  # noqa: PLR2004 (a key has 67)
    return None if match is None else KeyText(match[1], match[2])


def hash_secret(secret: str) -> str:
    """SHA-256 in hex. The secret has 256 random bits, so a slow hash would protect nothing (RFC 9106 is for passwords)."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches(secret: str, stored_hash: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(hash_secret(secret), stored_hash)
