"""Keeping evidence evidence: text of units cannot close its fence, forge a unit's header, or speak in a vendor's control tokens.

What is dangerous in place is changed visibly and as little as can be: the bracket that opens it becomes a
single angle quote, U+2039 (and, for control tokens, the one that closes it U+203A). People and models can still read what stood there, and who wants the original finds it under the unit's id.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Sequence

from adapters.look_alikes import ANGLES, NEUTRAL_CLOSE, NEUTRAL_OPEN, QUOTES, SQUARES, changes

_BAR = "|\uff5c"  # DeepSeek's control tokens have the full-width one

KEY_DIGITS = 18
"""Decimal digits of a fence key: 60 bits, and always six tokens in OpenAI's encodings, which cut numbers in threes."""

# Control tokens of OpenAI and DeepSeek (<|…|>, at most 100 characters inside) and Gemma (<|turn>, <turn|>).
_CONTROL = re.compile(rf"<([{_BAR}](?:[^<>\n]{{0,100}}[{_BAR}]|\w{{1,40}})|\w{{1,40}}[{_BAR}])>")

# DeepSeek's mark of its own markup, which is one token wherever it stands.
_BARE_MARK = re.compile(r"\uff5c(DSML)\uff5c")

_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_PLAIN_FIELD = re.compile(r"[\w.,:;@/+=()# -]*", re.ASCII)
_ODD_IN_FIELD = re.compile(rf"[\s\x00-\x1f\x7f-\x9f\u2028\u2029{_INVISIBLE}]+")
_FIELD_MARKS = str.maketrans("[<]>|\uff5c", f"{NEUTRAL_OPEN * 2}{NEUTRAL_CLOSE * 2}\u00a6\u00a6") | dict.fromkeys(
    map(ord, ANGLES + QUOTES + SQUARES), NEUTRAL_OPEN
)


def well_formed(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD, so that it can be sent as JSON."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def defuse(text: str) -> str:
    """A unit's text as it may stand inside the fence. Text without brackets or turn markers comes back as it is."""
    text = well_formed(text)
    while True:
        safe = _without_marks(text)
        # What is left may be a mark of its own once what stood in it is gone; few such levels fit into a token.
        if safe == text:
            return safe
        text = safe


def field(text: str) -> str:
    """An id, a name or the like as it may stand in a header: one line, without brackets or bars."""
    if _PLAIN_FIELD.fullmatch(text) is not None:
        return text
    return _ODD_IN_FIELD.sub(" ", well_formed(text)).translate(_FIELD_MARKS).strip()


def fence_key(secret: bytes, tenant_id: str, body: str) -> str:
    """The key of the fence around a body: HMAC-SHA256 of tenant and body, as decimal digits.

    Nobody without the secret can guess it, a text cannot hold the key of a fence it is part of, and the same body gives the same bytes.
    """
    message = well_formed(tenant_id).encode() + b"\x00" + body.encode()
    digest = hmac.digest(secret, message, hashlib.sha256)
    return _decimal(digest)


def lasting_key(secret: bytes, tenant_id: str, place: str, bodies: Sequence[str]) -> str:
    """A key that stays the same while what is fenced grows: HMAC-SHA256 of tenant and place, a task or a session, as decimal digits.

    What a model has seen once may come back in a text, so a key that stands in one of the bodies is passed over for the next.
    """
    number = 0
    while True:
        # It begins with NUL, which no tenant's name does, so it is never the message of another kind of key.
        message = b"\x01".join((well_formed(tenant_id).encode(), well_formed(place).encode(), b"%d" % number))
        digest = hmac.digest(secret, b"\x00lasting\x00" + message, hashlib.sha256)
        key = _decimal(digest)
        if not any(key in _plain_digits(body) for body in bodies):
            return key
        number += 1


def _plain_digits(text: str) -> str:
    """The text with digits of all scripts as ASCII ones."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _decimal(digest: bytes) -> str:
    return f"{int.from_bytes(digest[:16]) % 10**KEY_DIGITS:0{KEY_DIGITS}d}"


def _without_marks(text: str) -> str:
    if "<" in text or "\uff5c" in text:
        # One level of nesting a turn; what is inside has at most 100 characters, so there are few turns.
        before = ""
        while before != text:
            before, text = text, _CONTROL.sub(rf"{NEUTRAL_OPEN}\1{NEUTRAL_CLOSE}", text)
        text = _BARE_MARK.sub(rf"{NEUTRAL_OPEN}\1{NEUTRAL_CLOSE}", text)
    pieces: list[str] = []
    done = 0
    for start, end, instead in changes(text):
        if start < done:
            continue
        pieces += (text[done:start], instead)
        done = end
    return "".join((*pieces, text[done:])) if pieces else text
