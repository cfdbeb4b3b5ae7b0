"""Characters that look like others: what a model may take for the end of a fence or for a unit's header though the bytes are not the same.

Each character is reduced to the ASCII one that it looks like (its skeleton): full-width and other brackets, slashes, letters of other alphabets,
styled and accented letters; what shows nothing becomes one mark. A skeleton has as many characters as its text, so a place found in one is a
place in the other. The letters are those that the words sought are made of, chosen by us from Unicode's names and shapes.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import islice
from typing import Final

NOTHING: Final = "\u200b"
"""Stands for every character that shows nothing."""

ANGLES: Final = "\u02c2\u02f1\u1438\u226a\u227a\u22d6\ufe64\uff1c"
"""What looks like ``<`` and is no bracket or quotation mark of any writing."""
QUOTES: Final = "\u00ab\u2329\u276c\u276e\u2770\u27e8\u27ea\u2991\u29fc\u3008\u300a"
"""Brackets and quotation marks that look like it. U+2039, which stands in defused text in its place, is none."""
SQUARES: Final = "\u27e6\u2045\u3010\u3014\u3016\u3018\u301a\ufe5d\uff3b\u298b\u2308"
_SLASHES: Final = "\u2044\u2215\u2571\u29f8\uff0f\u338b\u3033\u29f6\ufe68\uff3c\\"
_BLANKS: Final = "\u115f\u1160\u3164\uffa0\u2800\u180e\u034f"

_LETTERS: Final = {
    "c": "\u0441\u0421\u03f2\u03f9\u1d04\u2ca5\u2ca4\uabaf\u13df\u04ab\u0188",
    "e": "\u0435\u0415\u0454\u0404\u03b5\u0395\u212e\u04bd\u0259\u1d07\u025b\u13ac",
    "i": "\u0456\u0406\u03b9\u0399\u0269\u026a\u0131\u04cf\u04c0\u0196\u13a5",
    "n": "\u0578\u057c\u043f\u03b7\u0274\u039d\u0272\u014b\u1d0e\u0220",
    "o": "\u043e\u041e\u03bf\u039f\u0585\u0555\u03c3\u1d0f\u0ce6\u09e6\u0966\u06f0\u2c9f\u2c9e\u0275\u00f8\u00d8\u3007",
    "t": "\u0442\u0422\u03c4\u03a4\u1d1b\u2ca7\u2ca6\u0163\u01ad\u13a2",
    "u": "\u0446\u057d\u054d\u03c5\u1d1c\u028b\u0244\u144c",
    "x": "\u0445\u0425\u03c7\u03a7\u00d7\u2cad\u2cac\u166d\u2573\u157d",
}

_MOST_KEPT: Final = 20_000
"""Characters whose skeleton is kept; a text of every character there is would otherwise stay in memory."""


class _Skeletons(dict[int, str]):
    """For ``str.translate``: the skeleton of each character, found when it first comes."""

    def __missing__(self, code: int) -> str:
        skeleton = _skeleton(chr(code))
        if len(self) < _MOST_KEPT:
            self[code] = skeleton
        return skeleton


_KNOWN: Final = {
    **dict.fromkeys(ANGLES, "<"),
    **dict.fromkeys(QUOTES, "\u00ab"),
    **dict.fromkeys(SQUARES, "["),
    **dict.fromkeys(_SLASHES, "/"),
    **dict.fromkeys(_BLANKS, NOTHING),
    **{like: letter for letter, likes in _LETTERS.items() for like in likes},
}


def _skeleton(character: str) -> str:
    known = _KNOWN.get(character)
    if known is not None:
        return known
    category = unicodedata.category(character)
    if category in {"Cf", "Mn", "Me"}:
        return NOTHING
    if category.startswith("Z"):
        return " "
    first = unicodedata.normalize("NFKD", character)[0]
    known = _KNOWN.get(first, first)
    return known.lower() if known.isascii() or known == "\u00ab" else character


SKELETONS: Final = _Skeletons()
_SUSPECT: Final = re.compile(f"[<\\[{ANGLES}{QUOTES}{SQUARES}]")
_FEW: Final = 8
"""Openers that are looked at one by one where they are few beside the text's length; else the whole text is reduced once."""
_WINDOW: Final = 64
"""Characters from an opener on that its patterns can reach."""


def _spread(word: str) -> str:
    """The word with things that show nothing between its letters."""
    return f"{NOTHING}{{0,4}}".join(word)


_GAP: Final = rf"[\s{NOTHING}]{{0,8}}"
_END: Final = r"(?:[^a-z0-9_]|$)"
_CONTEXT: Final = _spread("context")
# An angle opens the fence or ends it; a quotation mark or a square bracket is like it only where a slash follows.
_FENCE: Final = re.compile(
    rf"<(?={_GAP}(?:/{_GAP})?{_CONTEXT}{_END})|\u00ab(?={_GAP}/{_GAP}{_CONTEXT}{_END})|\[(?={_GAP}/{_GAP}{_CONTEXT}(?:[\s\]]|[^\x00-\x7f]|$))"
)
_HEADER: Final = re.compile(rf"\[(?={_GAP}{_spread('unit')}{_END})")

# The fence's name behind an escape that a reader may undo: an HTML entity, a JSON or URL escape.
_ESCAPED: Final = re.compile(
    r"(?:&lt;?|&\#0{0,6}60;?|&\#x0{0,6}3c;?|\\u003c|\\x3c|\\074|%3c)(?=\s{0,8}(?:/|\\/|%2f|&\#47;|&sol;)?\s{0,8}context\b)", re.IGNORECASE
)


def marks(text: str) -> tuple[list[int], list[int]]:
    """Where something opens that looks like the fence's own tag, and where something that looks like a unit's header, at whatever place of
    its line. Text of ASCII alone has none: there the tag and the header are what they look like, and sought by those who know them.
    """
    fences: list[int] = []
    headers: list[int] = []
    if text.isascii():
        return fences, headers
    openers = [found.start() for found in islice(_SUSPECT.finditer(text), _FEW + 1)]
    if len(openers) <= _FEW and 2 * _WINDOW * len(openers) < len(text):
        for at in openers:
            piece = text[at : at + _WINDOW].translate(SKELETONS)
            if _FENCE.match(piece) is not None:
                fences.append(at)
            elif _HEADER.match(piece) is not None:
                headers.append(at)
        return fences, headers
    skeleton = text.translate(SKELETONS)
    return [found.start() for found in _FENCE.finditer(skeleton)], [found.start() for found in _HEADER.finditer(skeleton)]


def without_escaped_fence(text: str, instead: str) -> str:
    """The text with escapes of ``<`` before the fence's name replaced."""
    return _ESCAPED.sub(instead, text) if "&" in text or "\\" in text or "%" in text else text
