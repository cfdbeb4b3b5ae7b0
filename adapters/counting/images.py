"""What an image costs, from its width and height as its first bytes say them."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from typing import NamedTuple

from adapters.counting.rules import ImageRule
from adapters.counting.sums import Sum

_HEAD = 256 * 1024
"""Base64 characters looked at: a JPEG may have a long profile before its size."""

_PATCHES = 1_536
_PATCH = 32
_TILE = 512
_LARGEST = 2_048
_SHORTEST = 768
_JPEG_SIZES = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})

_UNKNOWN = (64, 3_000)
"""Tokens between which an image of unknown size lies: a judgement over all rules."""


class Size(NamedTuple):
    """Pixels."""

    width: int
    height: int


def add_image(counts: Sum, rule: ImageRule | None, data: str, *, low_detail: bool = False) -> None:
    """Add an image given as base64 or as a data URL; one behind an address, or of unknown form, is guessed widely."""
    encoded = data.partition(",")[2] if data[:5].lower() == "data:" else data
    size = None if data[:4].lower() == "http" else size_of(encoded)
    if rule is None or (size is None and not (low_detail or rule.by == "flat")):
        value = rule.base if rule is not None and rule.base else 800
        counts.guess("content", max(value, 800), *_UNKNOWN, "image_size_unknown")
        return
    tokens = tokens_of(rule, size or Size(_TILE, _TILE), low_detail=low_detail)
    counts.guess("content", tokens, tokens * (1 - rule.error), tokens * (1 + rule.error), "image_by_rule")


def tokens_of(rule: ImageRule, size: Size, *, low_detail: bool = False) -> int:
    """Tokens by the vendor's published rule."""
    width, height = size
    if rule.by == "tiles":
        if low_detail:
            return rule.base
        shrink = min(1.0, _LARGEST / max(width, height))
        width, height = width * shrink, height * shrink
        shrink = min(1.0, _SHORTEST / min(width, height))
        return rule.base + rule.tile * math.ceil(width * shrink / _TILE) * math.ceil(height * shrink / _TILE)
    if rule.by == "patches":
        patches = math.ceil(width / _PATCH) * math.ceil(height / _PATCH)
        return math.ceil(min(patches, _PATCHES) * rule.factor)
    if rule.by == "area":
        shrink = min(1.0, rule.edge / max(width, height))
        return math.ceil(min(width * shrink * height * shrink / rule.divisor, rule.base))
    if rule.tile and max(width, height) > rule.edge:
        return rule.base * math.ceil(width / rule.tile) * math.ceil(height / rule.tile)
    return rule.base


def size_of(encoded: str) -> Size | None:
    """Width and height of a PNG, GIF, JPEG or WebP in base64; None for anything else, for none and for nonsense."""
    head = encoded[:_HEAD]
    try:
        raw = base64.b64decode(head[: len(head) // 4 * 4].replace("-", "+").replace("_", "/"), validate=False)
    except (binascii.Error, ValueError):
        return None
    try:
        size = _size(raw)
    except (struct.error, IndexError):
        return None
    return size if size is not None and size.width > 0 and size.height > 0 else None


def _size(raw: bytes) -> Size | None:
    if raw[:8] == b"\x89PNG\r\n\x1a\n":
        return Size(*struct.unpack_from(">II", raw, 16))
    if raw[:6] in {b"GIF87a", b"GIF89a"}:
        return Size(*struct.unpack_from("<HH", raw, 6))
    if raw[:2] == b"\xff\xd8":
        return _jpeg(raw)
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return _webp(raw)
    return None


def _jpeg(raw: bytes) -> Size | None:
    at = 2
    while at + 9 <= len(raw):
        if raw[at] != 0xFF:  # noqa: PLR2004 (every marker begins so)
            return None
        if raw[at + 1] in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", raw, at + 5)
            return Size(width, height)
        at += 2 + max(int.from_bytes(raw[at + 2 : at + 4], "big"), 2)
    return None


def _webp(raw: bytes) -> Size | None:
    kind = raw[12:16]
    if kind == b"VP8X":
        return Size(1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little"))
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", raw, 26)
        return Size(width & 0x3FFF, height & 0x3FFF)
    if kind == b"VP8L":
        bits = int.from_bytes(raw[21:25], "little")
        return Size(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    return None
