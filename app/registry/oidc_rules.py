"""What may be asked of an OIDC issuer: which algorithms, and at which addresses. Knows nothing of JWTs, so that settings are checked cheaply."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

ALGORITHMS: dict[str, tuple[str, str | None]] = {
    "RS256": ("RSA", None),
    "RS384": ("RSA", None),
    "RS512": ("RSA", None),
    "PS256": ("RSA", None),
    "PS384": ("RSA", None),
    "PS512": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""Algorithms that can be allowed, with the type and the curve of their keys (RFC 7518, RFC 8037). ``none`` and HMAC are not among them: with
HMAC whoever checks could also sign, and a public key would pass as the secret.
"""


def algorithms_of(text: str) -> tuple[str, ...]:
    """Algorithms from a comma-separated setting.

    Raises:
        ValueError: there is none, or one of them cannot be allowed.
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or not set(names) <= ALGORITHMS.keys():
        raise ValueError("not algorithms with a public key")
    return names


def may_be_asked(address: str, *, plain_http: bool) -> bool:
    """Whether keys may be fetched from there: over https, or over http from this very machine when that is allowed."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or port == 0 or parts.username is not None or parts.fragment or not address.isprintable() or " " in address:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and plain_http and _loopback(host))


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
