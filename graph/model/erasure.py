"""Erasure: what a tombstone is made from, and what is told of an erased tenant. Nothing here can be turned back into what was erased."""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

import orjson
from pydantic import Field

from graph.model.base import Id, Model, ShortText, Timestamp

# Characters that show nothing and are not of the categories that are left out below: joiners, fillers and selectors of a variant.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\ufffc\U00016fe4\U0001d159\U000e0000-\U000e0fff]"
)
_LEFT_OUT = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})
"""Separators, controls, and formats: zero-width characters and soft hyphens among them."""
_KEPT_TENANTS = 4_096


class Refuses(StrEnum):
    """What the tombstone of a unit refuses to take again."""

    VALUE = "value"
    """Its id, and its content in any spelling."""
    ID = "id"
    """Its id alone: for content that others say too, such as "Done."."""


def normalised_value(content: str) -> str:
    """A content without what can differ between two spellings of the same: Unicode form (NFKC), case, white space, unseen characters."""
    if content.isascii():
        return "".join(character for character in content.lower() if "\x20" < character < "\x7f")
    text = _UNSEEN.sub("", unicodedata.normalize("NFKC", content))
    # Folding can give what has another NFKC form, and that what folds again. In capitals first: a dotless i folds
    # to itself, its capital to i.
    for _ in range(2):
        text = unicodedata.normalize("NFKC", text.upper().casefold())
    text = "".join(character for character in _UNSEEN.sub("", text) if unicodedata.category(character) not in _LEFT_OUT)
    return unicodedata.normalize("NFKC", text)


class TombstoneKey:
    """Hashes of one tenant's tombstones (HMAC-SHA256, 64 hex characters): without the installation's secret, nobody can try values."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of_id(self, unit_id: str) -> str:
        """The hash of a unit's id; case and form count, as they do in ids."""
        return self._hash(b"id\0", unit_id)

    def of_value(self, content: str, agent_id: str | None = None) -> str:
        """The hash of a content, the same for all its spellings: for the whole tenant, or as one agent's."""
        return self.of_values(content, (agent_id,))[0]

    def of_values(self, content: str, agent_ids: Sequence[str | None]) -> list[str]:
        """``of_value`` for each of these: a content is normalised once, which takes longer than its hashes."""
        value = normalised_value(content)
        return [self._hash(b"value\0" if agent_id is None else b"value of\0" + agent_id.encode() + b"\0", value) for agent_id in agent_ids]

    def _hash(self, what: bytes, text: str) -> str:
        return hmac.digest(self._key, what + text.encode(), hashlib.sha256).hex()


class TombstoneKeys:
    """Keys of tombstones by tenant, derived from the installation's secret: the same value has another hash in another tenant."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, b"tombstone", hashlib.sha256)
        self.of = lru_cache(maxsize=_KEPT_TENANTS)(self._of)

    def _of(self, tenant_id: str) -> TombstoneKey:
        return TombstoneKey(hmac.digest(self._secret, b"tenant\0" + tenant_id.encode(), hashlib.sha256))

    def record_of(self, tenant_id: str) -> str:
        """The name under which the record of an erased tenant is kept."""
        return hmac.digest(self._secret, b"record\0" + tenant_id.encode(), hashlib.sha256).hex()


class TenantErasure(Model):
    """The body of ``DELETE /v1/tenant``."""

    tenant: Id = Field(description="The tenant's name, once more, so that none is erased by mistake.")
    reason: ShortText | None = None


class ErasureProgress(Model):
    """How far the erasure of a tenant is."""

    nodes: int = Field(description="Nodes deleted so far.")
    edges: int = Field(description="Edges deleted so far.")


class Scan(Model):
    """A look at every node of the database for the tenant's name, after the erasure."""

    at: Timestamp
    found: int = Field(description="Nodes that still bear the tenant's name; 0 after a whole erasure.")
    statement: str


class ErasureCertificate(Model):
    """What was erased of a tenant, and that nothing of it was found afterwards."""

    tenant: str
    begun_at: Timestamp
    ended_at: Timestamp
    nodes: dict[str, int] = Field(description="Deleted nodes by label.")
    edges: dict[str, int] = Field(description="Deleted edges by type.")
    sha256: str = Field(description="SHA-256 (hex) of tenant, begun_at, ended_at, nodes and edges as JSON with sorted keys and no spaces.")
    scan: Scan


class ErasureLine(Model):
    """A line of the answer to ``DELETE /v1/tenant``: progress, and in the last one the certificate, or the problem that ended it."""

    progress: ErasureProgress | None = None
    certificate: ErasureCertificate | None = None
    problem: dict[str, str] | None = None


def checksum(tenant: str, begun_at: str, ended_at: str, nodes: Mapping[str, int], edges: Mapping[str, int]) -> str:
    """The SHA-256 of a certificate; times in ISO form, in UTC."""
    told = {"tenant": tenant, "begun_at": begun_at, "ended_at": ended_at, "nodes": dict(nodes), "edges": dict(edges)}
    return hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest()
