"""Originals of attachments (U14): their names, their rules, and what is told of them."""

from __future__ import annotations

import hashlib
import re

from pydantic import Field

from graph.model.base import Model
from graph.model.errors import InvalidField
from graph.model.units import Scope

DIGEST = re.compile(r"[0-9a-f]{64}")
MEDIA_TYPE = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,63}", re.ASCII)
UNKNOWN_MEDIA_TYPE = "application/octet-stream"
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")


class StoredAttachment(Model):
    """An original that is stored. The answer is the same whether it was there before or not."""

    sha256: str = Field(description="Digest of its bytes, and its name.")
    bytes: int
    media_type: str


def check_digest(value: str) -> str:
    """The value when it is a SHA-256 in lower-case hex.

    Raises:
        InvalidField: it is not.
    """
    if DIGEST.fullmatch(value) is None:
        raise InvalidField("A digest is SHA-256 as 64 lower-case hex digits.").at(field="sha256")
    return value


def check_media_type(value: str | None) -> str:
    """The media type without its parameters, application/octet-stream when none is told.

    Raises:
        InvalidField: it is none.
    """
    told = (value or UNKNOWN_MEDIA_TYPE).partition(";")[0].strip()
    if MEDIA_TYPE.fullmatch(told) is None:
        raise InvalidField("The content type is not a media type.").at(field="content-type")
    return told.lower()


def tenant_folder(tenant_id: str) -> str:
    """Where everything of a tenant lies: the first part of each key."""
    return _part("t", tenant_id)


def object_key(tenant_id: str, place: Scope, sha256: str) -> str:
    """tenant/organization/assessment/sha256. Every part is a plain lower-case name, whatever the ids are made of, and no two ids share one."""
    return "/".join((_part("t", tenant_id), _part("o", place.organization_id), _part("a", place.assessment_id), sha256))


def _part(letter: str, id: str | None) -> str:
    # A file system may not tell capitals apart, may know no long names, and gives some a meaning; a digest has none of that.
    if id is None:
        return letter
    return f"{letter}-{id}" if _PLAIN.fullmatch(id) else f"{letter}~{hashlib.sha256(id.encode()).hexdigest()}"
