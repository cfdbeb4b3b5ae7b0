"""The public keys of an OIDC issuer: found through its discovery document, kept, and fetched anew in time.

A request waits for the issuer only when its key is not known or has grown old; otherwise keys are fetched behind its back. One fetch runs at
a time, whoever asks. A fetch that fails changes nothing: known keys go on until they are older than the limit.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, cast

import httpx2
import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from app.registry.oidc_rules import ALGORITHMS, may_be_asked
from graph.model.errors import IssuerUnavailable, Unauthenticated

log = logging.getLogger(__name__)

FETCH_DEADLINE_S = 5.0
"""For the discovery document and the keys together."""
MOST_BYTES = 262_144
"""Of either document. Issuers with a dozen keys send 10 to 20 kB."""
MOST_KEYS = 256
LEAST_RSA_BITS, MOST_RSA_BITS = 2_048, 16_384
"""RFC 7518, 3.3; above, a key would cost more to use than it protects."""
DISCOVERY = "/.well-known/openid-configuration"
PUBLIC_PARTS = ("kty", "crv", "n", "e", "x", "y")
"""What is read of a key: were a private part published by mistake, it is not even parsed."""

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


class IssuerUnusable(Exception):
    """What the issuer answered is not what an issuer answers."""


@dataclass(frozen=True, slots=True)
class IssuerSource:
    """Where keys come from, and how long they are used. Times in seconds."""

    issuer: str
    plain_http: bool
    ca_file: Path | None
    refresh_s: float
    """Age from which keys are fetched anew."""
    usable_s: float
    """Age up to which keys are used while the issuer does not answer."""
    refetch_s: float
    """Least time between two fetches for unknown keys, and after a fetch that failed."""
    most_waiting: int
    """Requests that may wait for a fetch at once; a slow issuer must not take the places of those who came with an API key."""


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """A key that signatures are checked with."""

    kind: str
    curve: str | None
    algorithm: str | None
    """The one algorithm that the issuer uses it with, if it says."""
    public: PublicKey

    def serves(self, algorithm: str) -> bool:
        """Whether a token of this algorithm may be checked with it."""
        return ALGORITHMS[algorithm] == (self.kind, self.curve) and self.algorithm in {None, algorithm}


class IssuerKeys:
    """An issuer's keys. Belongs to one event loop."""

    def __init__(self, source: IssuerSource) -> None:
        self._source = source
        self._refresh_s = min(source.refresh_s, source.usable_s)
        self._keys: Mapping[str, list[IssuerKey]] = {}
        self._fetched_at = -math.inf
        self._failed_at = -math.inf
        self._failing = False
        self._unknown_at = -math.inf
        self._waiting = 0
        self._fetching: asyncio.Task[dict[str, list[IssuerKey]]] | None = None

    async def find(self, key_id: str, algorithm: str) -> PublicKey:
        """The key of this id for this algorithm.

        Raises:
            Unauthenticated: the issuer has no such key.
            IssuerUnavailable: it cannot be told whether it has.
        """
        if self._must_wait(key_id, algorithm):
            await self._fetch_now()
        elif self._age() > self._refresh_s:
            self._begin_fetch()
        found = self._known(key_id, algorithm)
        if found is not None:
            return found
        if self._failing or self._age() > self._source.usable_s:
            raise IssuerUnavailable(retry_after_s=max(1, math.ceil(self._source.refetch_s)))
        raise Unauthenticated

    async def close(self) -> None:
        """Give up a fetch that is under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait({self._fetching})

    def _age(self) -> float:
        return monotonic() - self._fetched_at

    def _known(self, key_id: str, algorithm: str) -> PublicKey | None:
        if self._age() > self._source.usable_s:
            return None
        return next((key.public for key in self._keys.get(key_id, ()) if key.serves(algorithm)), None)

    def _must_wait(self, key_id: str, algorithm: str) -> bool:
        """Whether the answer depends on a fetch. An unknown id asks for one at most every ``refetch_s``, however many ids are invented."""
        age = self._age()
        idle = self._fetching is None and not self._failing
        if age > self._source.usable_s or (age > 2 * self._refresh_s and idle):
            return True
        if self._known(key_id, algorithm) is not None:
            return False
        if self._fetching is not None or self._failing:
            return True
        if monotonic() - self._unknown_at < self._source.refetch_s:
            return False
        self._unknown_at = monotonic()
        return True

    async def _fetch_now(self) -> None:
        self._begin_fetch()
        if self._fetching is None:
            return
        if self._waiting >= self._source.most_waiting:
            raise IssuerUnavailable(retry_after_s=1)
        self._waiting += 1
        try:
            # Waited for, not owned: a caller that leaves does not end the fetch of the others.
            await asyncio.wait({self._fetching})
        finally:
            self._waiting -= 1

    def _begin_fetch(self) -> None:
        if self._fetching is None and monotonic() - self._failed_at >= self._source.refetch_s:
            self._fetching = asyncio.create_task(_fetched(self._source), name="fetch the issuer's keys")
            self._fetching.add_done_callback(self._take)

    def _take(self, done: asyncio.Task[dict[str, list[IssuerKey]]]) -> None:
        self._fetching = None
        if done.cancelled():
            return
        failure = done.exception()
        self._failing = failure is not None
        if failure is None:
            self._keys, self._fetched_at, self._failed_at = done.result(), monotonic(), -math.inf
            return
        self._failed_at = monotonic()
        # Its text may repeat what the issuer sent; its type does not.
        log.warning("the keys of the OIDC issuer cannot be had: %s", type(failure).__name__)


async def _fetched(source: IssuerSource) -> dict[str, list[IssuerKey]]:
    """The issuer's keys by id.

    Raises:
        IssuerUnusable, httpx2.HTTPError, TimeoutError, OSError: they cannot be had.
    """
    trusted = ssl.create_default_context(cafile=source.ca_file) if source.ca_file is not None else True
    async with (
        asyncio.timeout(FETCH_DEADLINE_S),
        # A redirect is not followed: where keys come from is said by the setting and by the issuer's own document, and by nobody between.
        httpx2.AsyncClient(
            verify=trusted,
            trust_env=False,
            follow_redirects=False,
            timeout=FETCH_DEADLINE_S,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        ) as client,
    ):
        told = await _document(client, source.issuer.rstrip("/") + DISCOVERY)
        if told.get("issuer") != source.issuer:
            raise IssuerUnusable("the discovery document is another issuer's")
        address = told.get("jwks_uri")
        if not isinstance(address, str) or not may_be_asked(address, plain_http=source.plain_http):
            raise IssuerUnusable("keys cannot be fetched from where the discovery document says")
        return keys_of(await _document(client, address))


async def _document(client: httpx2.AsyncClient, address: str) -> dict[str, Any]:
    """A JSON object of bounded size, in its plain form: compressed, a small answer could unfold into a huge one."""
    try:
        async with client.stream("GET", address) as response:
            if response.status_code != 200 or response.headers.get("content-encoding", "identity") != "identity":  # noqa: PLR2004 (OK)
                raise IssuerUnusable("not a plain answer")
            parts: list[bytes] = []
            size = 0
            async for part in response.aiter_raw():
                size += len(part)
                if size > MOST_BYTES:
                    raise IssuerUnusable("a document over the limit")
                parts.append(part)
        told: object = orjson.loads(b"".join(parts))
    except (orjson.JSONDecodeError, httpx2.InvalidURL):
        raise IssuerUnusable("not a JSON document") from None
    if not isinstance(told, dict):
        raise IssuerUnusable("not an object")
    return cast("dict[str, Any]", told)


def keys_of(document: Mapping[str, Any]) -> dict[str, list[IssuerKey]]:
    """The keys of a JWKS (RFC 7517) that signatures can be checked with, by id; others are passed over.

    Raises:
        IssuerUnusable: it is no JWKS.
    """
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise IssuerUnusable("no list of keys")
    found: dict[str, list[IssuerKey]] = {}
    for item in cast("list[object]", listed)[:MOST_KEYS]:
        if not isinstance(item, dict):
            continue
        told = cast("dict[str, Any]", item)
        key_id, key = told.get("kid"), _key_of(told)
        if isinstance(key_id, str) and key is not None:
            found.setdefault(key_id, []).append(key)
    return found


def _key_of(told: Mapping[str, Any]) -> IssuerKey | None:
    """A key of a JWKS, when it is for signatures, public, whole and strong enough."""
    algorithm, operations = told.get("alg"), told.get("key_ops", ["verify"])
    for_signatures = told.get("use", "sig") == "sig" and isinstance(operations, list) and "verify" in operations
    if not for_signatures or not (algorithm is None or isinstance(algorithm, str)):
        return None
    try:
        public: object = jwt.PyJWK({name: told[name] for name in PUBLIC_PARTS if name in told}).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError):
        return None
    if isinstance(public, RSAPublicKey):
        return IssuerKey("RSA", None, algorithm, public) if LEAST_RSA_BITS <= public.key_size <= MOST_RSA_BITS else None
    if isinstance(public, EllipticCurvePublicKey | Ed25519PublicKey):
        return IssuerKey(str(told["kty"]), str(told["crv"]), algorithm, public)
    return None
