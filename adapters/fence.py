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

from adapters.look_alikes import ANGLES, QUOTES, SQUARES, marks, without_escaped_fence

NEUTRAL_OPEN = "\u2039"
NEUTRAL_CLOSE = "\u203a"

_BAR = "|\uff5c"  # DeepSeek's control tokens have the full-width one

KEY_DIGITS = 18
"""Decimal digits of a fence key: 60 bits, and always six tokens in OpenAI's encodings, which cut numbers in threes."""

# Control tokens of OpenAI and DeepSeek (<|…|>, at most 100 characters inside) and Gemma (<|turn>, <turn|>).
_CONTROL = re.compile(rf"<([{_BAR}](?:[^<>\n]{{0,100}}[{_BAR}]|\w{{1,40}})|\w{{1,40}}[{_BAR}])>")

# Tags that models were trained to read as roles, tool traffic or reasoning, and the fence's own name, opening or closing.
_TAG = re.compile(
    r"<(?=\s{0,8}/?\s{0,8}(?P<name>context|system|developer|assistant|user|human|tools?|instructions?|tool_results?|tool_use|tool_calls?"
    r"|tool_responses?|function_calls?|function_results?|functions?(?==)|invoke|parameter(?==)|think|thinking|start_of_turn|end_of_turn"
    r"|start_of_image|end_of_image|bos|eos|pad|unk|mask|s|antml:\w+)(?:[\s/>:|=]|$))",
    re.IGNORECASE,
)
_LLAMA_SYSTEM = re.compile(r"<<(?=/?SYS>>)")
# Llama's and Mistral's marks in square brackets, and MiniMax's, whose brackets stand the other way round.
_BRACKETED = re.compile(
    r"\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS?|TOOL_RESULTS?|TOOL_CONTENT|MODEL_SETTINGS|THINK|ARGS|CALL_ID)\])|[\]\[](?=~!?b[\]\[])|\[(?=e~\[)"
)

# The fence's end in square brackets, which a reader may take for it.
_SQUARE_END = re.compile(r"\[(?=\s{0,8}/\s{0,8}context[\s\]])", re.IGNORECASE)

# DeepSeek's mark of its own markup, which is one token wherever it stands.
_BARE_MARK = re.compile(r"\uff5c(DSML)\uff5c")

# The turn markers of Anthropic's old completion format, where they start a line.
_TURN = re.compile(r"(?P<role>Human|Assistant):")

_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_HEADER = re.compile(rf"\[(?=[\s{_INVISIBLE}]{{0,8}}unit\b)", re.IGNORECASE)
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
# What may stand before a look-alike on its line and still let it pass for a header: space, invisible characters, markdown's marks.
_LEAD = re.compile(rf"[ \t\u00a0>*#_~`\-{_INVISIBLE}]*\Z")
_MOST_LEAD = 64

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
    text = without_escaped_fence(_without_look_alikes(well_formed(text)), NEUTRAL_OPEN)
    if "<" in text or "\uff5c" in text:
        # One level of nesting a turn; what is inside has at most 100 characters, so there are few turns.
        before = ""
        while before != text:
            before, text = text, _CONTROL.sub(rf"{NEUTRAL_OPEN}\1{NEUTRAL_CLOSE}", text)
        text = _BARE_MARK.sub(rf"{NEUTRAL_OPEN}\1{NEUTRAL_CLOSE}", text)
        text = _TAG.sub(_without_tag, text)
        text = _LLAMA_SYSTEM.sub(NEUTRAL_OPEN * 2, text)
    if "[" in text or "]~" in text:
        text = _BRACKETED.sub(NEUTRAL_OPEN, text)
        text = _SQUARE_END.sub(NEUTRAL_OPEN, text)
        text = _HEADER.sub(lambda found: NEUTRAL_OPEN if _starts_line(found) else found[0], text)
    if "Human:" in text or "Assistant:" in text:
        text = _TURN.sub(lambda found: f"{NEUTRAL_OPEN}{found['role']}{NEUTRAL_CLOSE}:" if _starts_line(found) else found[0], text)
    return text


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


def _without_look_alikes(text: str) -> str:
    """The text without what only looks like the fence's tag or a unit's header."""
    if text.isascii():
        return text
    fences, headers = marks(text)
    places = [*fences, *(at for at in headers if _starts_line_at(text, at))]
    if not places:
        return text
    characters = list(text)
    for at in places:
        characters[at] = NEUTRAL_OPEN
    return "".join(characters)


def _without_tag(found: re.Match[str]) -> str:
    # A type argument such as List<User> is code, not a tag; the fence's own name is never let through.
    name = found["name"]
    before = found.string[found.start() - 1 : found.start()]
    is_code = (before.isalnum() or before == "_") and not (name.islower() or name.isupper())
    return found[0] if is_code and name.lower() != "context" else NEUTRAL_OPEN


def _starts_line(found: re.Match[str]) -> bool:
    return _starts_line_at(found.string, found.start())


def _starts_line_at(text: str, start: int) -> bool:
    lead = text[max(0, start - _MOST_LEAD) : start]
    cut = max(lead.rfind(end) for end in _LINE_ENDS)
    if cut < 0 and start > _MOST_LEAD:
        # Longer leads are taken for the start of a line when there is nothing else in them.
        return _LEAD.match(lead) is not None
    return _LEAD.match(lead, cut + 1) is not None
