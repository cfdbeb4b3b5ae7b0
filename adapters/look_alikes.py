"""Text as a model may read it: what looks like a mark, is spelled as an escape, or is drawn out by what shows nothing.

Each character is reduced to the ASCII one that it looks like (its skeleton): full-width and other brackets, slashes, letters of other alphabets,
styled and accented letters; what shows nothing becomes one mark, and so does all of an escape but the character that it stands for. A skeleton
has as many characters as its text, so a place found in one is a place in the other. The letters are those that the words sought are made of,
chosen by us from Unicode's names and shapes.

All patterns are linear: each begins at a bracket or a line's start, a gap is taken whole and never given back, and one gap is crossed from a few
places only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from html.entities import html5
from typing import Final, NamedTuple

NOTHING: Final = "\u200b"
"""Stands for every character that shows nothing."""

NEUTRAL_OPEN: Final = "\u2039"
NEUTRAL_CLOSE: Final = "\u203a"

ANGLES: Final = "\u02c2\u02f1\u1438\u226a\u226e\u227a\u2280\u22d6\ufe64\uff1c"
"""What looks like ``<`` and is no bracket or quotation mark of any writing."""
QUOTES: Final = "\u00ab\u2329\u276c\u276e\u2770\u27e8\u27ea\u2991\u29fc\u3008\u300a\ufe3d\ufe3f"
"""Brackets and quotation marks that look like it. U+2039, which stands in defused text in its place, is none."""
SQUARES: Final = "\u27e6\u2045\u3010\u3014\u3016\u3018\u301a\ufe17\ufe39\ufe3b\ufe47\ufe5d\uff3b\u298b\u2308"
_CLOSING_SQUARES: Final = "\u27e7\u2046\u3011\u3015\u3017\u3019\u301b\ufe18\ufe3a\ufe3c\ufe48\ufe5e\uff3d\u298c\u2309"
_CLOSING_ANGLES: Final = "\u02c3\u02f2\u1433\u226b\u226f\u227b\u22d7\ufe65\uff1e"
_COLONS: Final = "\u2a74\U00010781\u02d0\u0589\u05c3\u2236\ua789\ufe13\ufe30\ufe55\uff1a"
_BARS: Final = "\u01c0\u2223\u2502\u23d0\uff5c\uffe8"
_ESCAPERS: Final = "&\\\\%\ufe60\uff06\ufe6a\uff05\ufe68\uff3c"
_SLASHES: Final = "\u2044\u2215\u2571\u29f8\uff0f\u338b\u3033\u29f6\ufe68\uff3c"
_BLANKS: Final = "\u115f\u1160\u3164\uffa0\u2800\u180e\u034f"

_LETTERS: Final = {
    "a": "\u0430\u0410\u03b1\u0391\u0251\u1d00",
    "b": "\u0432\u0412\u0392\u03b2\u042c\u044c\u0299",
    "c": "\u0441\u0421\u03f2\u03f9\u1d04\u2ca5\u2ca4\uabaf\u13df\u04ab\u0188",
    "d": "\u0501\u0500\u0257\u0111\u1d05\u13e7",
    "e": "\u0435\u0415\u0454\u0404\u03b5\u0395\u212e\u04bd\u0259\u1d07\u025b\u13ac",
    "f": "\u0192\u03dc\u03dd\ua730",
    "g": "\u0261\u0262\u0581\u0260",
    "h": "\u04bb\u04ba\u043d\u041d\u0397\u0570\u029c\u0127\u13bb",
    "i": "\u0456\u0406\u03b9\u0399\u0269\u026a\u0131\u04cf\u04c0\u0196\u13a5",
    "k": "\u043a\u041a\u03ba\u039a\u1d0b\u0199",
    "l": "\u029f\u0142\u0141\u2113\u13de",
    "m": "\u043c\u041c\u039c\u1d0d\u13b7",
    "n": "\u0578\u057c\u043f\u03b7\u0274\u039d\u0272\u014b\u1d0e\u0220",
    "o": "\u043e\u041e\u03bf\u039f\u0585\u0555\u03c3\u1d0f\u0ce6\u09e6\u0966\u06f0\u2c9f\u2c9e\u0275\u00f8\u00d8\u3007",
    "p": "\u0440\u0420\u03c1\u03a1\u1d18",
    "r": "\u0433\u0280\u1d26",
    "s": "\u0455\u0405\ua731\u0282\u054f\u13da",
    "t": "\u0442\u0422\u03c4\u03a4\u1d1b\u2ca7\u2ca6\u0163\u01ad\u13a2",
    "u": "\u0446\u057d\u054d\u03c5\u1d1c\u028b\u0244\u144c",
    "v": "\u0475\u0474\u03bd\u1d20",
    "x": "\u0445\u0425\u03c7\u03a7\u00d7\u2cad\u2cac\u166d\u2573\u157d",
    "y": "\u0443\u0423\u04af\u04ae\u03b3\u03a5\u028f",
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
    **dict.fromkeys(_CLOSING_SQUARES, "]"),
    **dict.fromkeys(_CLOSING_ANGLES, ">"),
    **dict.fromkeys(_COLONS, ":"),
    **dict.fromkeys(_BARS, "|"),
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
    if category == "Cc":
        return character if character.isspace() else NOTHING
    if category.startswith("Z"):
        return " " if category == "Zs" else "\n"
    if category == "So":
        return character
    first = unicodedata.normalize("NFKD", character)[0]
    known = _KNOWN.get(first, first)
    return known.lower() if known.isascii() or known == "\u00ab" else character


SKELETONS: Final = _Skeletons()
SUSPECT: Final = re.compile(f"[<\\[\\]:{ANGLES}{QUOTES}{SQUARES}{_CLOSING_SQUARES}{_COLONS}{_ESCAPERS}]")

_LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85"  # and of a text U+2028 and U+2029, which are line feeds in its skeleton
_UNSEEN: Final = f"{NOTHING}*+"
_GAP: Final = rf"[\s{NOTHING}]*+"


def _drawn_out(word: str) -> str:
    """The word with blanks, line ends and things that show nothing between its letters."""
    return _GAP.join(map(re.escape, word))


def _spread(word: str) -> str:
    """The word with things that show nothing between its letters."""
    return _UNSEEN.join(map(re.escape, word))


_CONTEXT_ENDS: Final = r"(?![a-z0-9_]|[.\-][a-z])"
_OPENING_ENDS: Final = r"(?:[\s/>:|=]|[^\x00-\x7f]|\Z)"
# Between an opener and the fence's name: one slash or more, with what fills a tag and is no name: <//context>, <\/context>, <!--/context-->.
_FILLED_SLASH: Final = rf"[\s{NOTHING}_!~^|?\\\-]*+/[\s{NOTHING}/\\]*+"
_FENCE: Final = re.compile(
    rf"[<\u00ab\[](?:(?<!\[)(?={_FILLED_SLASH}{_drawn_out('context')}{_CONTEXT_ENDS})"
    rf"|(?<=<)(?={_GAP}{_spread('context')}{_OPENING_ENDS})"
    rf"|(?<=<)(?={_GAP}\\{_GAP}(?P<after_backslash>{_drawn_out('context')}){_OPENING_ENDS})"
    rf"|(?<=\[)(?={_GAP}/{_GAP}{_drawn_out('context')}(?:[\s\]]|[^\x00-\x7f]|\Z)))"
)

_ROLES: Final = (
    "system", "developer", "assistant", "user", "human", "tool", "tools", "instruction", "instructions", "tool_result", "tool_results",
    "tool_use", "tool_call", "tool_calls", "tool_response", "tool_responses", "function_call", "function_calls", "function_result",
    "function_results", "invoke", "think", "thinking", "start_of_turn", "end_of_turn", "start_of_image", "end_of_image",
    "bos", "eos", "pad", "unk", "mask", "s",
    "system-reminder", "system_reminder", "system-prompt", "system_prompt", "system-message", "system_message",
    "system-instruction", "system_instruction", "system-instructions", "system_instructions",
)  # fmt: skip
_NAMES: Final = "|".join(
    [
        *(_drawn_out(name) for name in sorted(_ROLES, key=len, reverse=True)),
        *(rf"{_drawn_out(name)}(?={_GAP}=)" for name in ("functions", "function", "parameter")),
        rf"{_drawn_out('antml:')}{_GAP}\w+",
    ]
)
# Tags that models were trained to read as roles, tool traffic or reasoning, opening or closing.
_TAG: Final = re.compile(rf"<(?={_GAP}(?:/{_GAP})?(?=[a-z])(?P<name>{_NAMES})(?:(?P<closed>{_GAP}/?{_GAP}>)|[\s{NOTHING}/>:|=]|\Z))")
# Control tokens of OpenAI, DeepSeek and Gemma, drawn out: bars beside the brackets and a word between them.
_CONTROL: Final = re.compile(
    rf"<(?=(?P<before>{_GAP})(?P<bar>\|?)(?P<inside>[\w\s{NOTHING}\u2581]*+)(?P<second>\|?)(?P<after>{_GAP})(?P<end>>))"
)
_ONE_BARRED: Final = frozenset({"turn", "channel", "think", "tool", "tool_call", "tool_response", "image", "audio"})
"""Gemma's, whose bar is at one end. With blanks, other words are taken for a comparison and a pipe."""
_LLAMA_SYSTEM: Final = re.compile(rf"<(?={_GAP}(?P<second><){_GAP}(?:/{_GAP})?{_drawn_out('sys')}{_GAP}>)")
# Llama's and Mistral's marks in square brackets, and MiniMax's, whose brackets stand the other way round.
_SQUARE_NAMES: Final = "|".join(
    map(
        _drawn_out,
        (
            "inst", "system_prompt", "available_tools", "tool_calls", "tool_call", "tool_results", "tool_result", "tool_content",
            "model_settings", "think", "args", "call_id",
        ),
    )
)  # fmt: skip
_BRACKETED: Final = re.compile(
    rf"[\]\[](?:(?<=\[)(?={_GAP}(?:/{_GAP})?(?=[istamc])(?P<name>{_SQUARE_NAMES}){_GAP}\])"
    rf"|(?={_UNSEEN}~{_UNSEEN}(?:!{_UNSEEN})?b{_UNSEEN}[\]\[])|(?<=\[)(?={_UNSEEN}e{_UNSEEN}~{_UNSEEN}\[))"
)

# Both are sought in a skeleton with a line feed before it.
# What may stand before a header on its line and still let it pass for one: blanks, what shows nothing, marks of lists, quotes, headings and tables.
_HEADER: Final = re.compile(
    rf"[{_LINE_ENDS}](?:[^\w\[\]<>(){{}}\"'/\\\u00ab\u2039\u203a@$%&?{_LINE_ENDS}]|[_>]|(?:\d{{1,9}}|[a-z])[.):])*+"
    rf"\[(?={_GAP}{_drawn_out('unit')}(?![a-z0-9_]))"
)
# The turn markers of Anthropic's old completion format. A list or a table of what people said is no such marker.
_TURN: Final = re.compile(rf"[{_LINE_ENDS}][ \t\x1f{NOTHING}>*#_~`\-]*+(?P<role>{_spread('human')}|{_spread('assistant')})(?={_GAP}:)")

_HEX: Final = "[0-9a-f]"
# Escapes that a reader may undo: HTML's, those of JSON and programs, and a URL's, each also escaped again.
_ESCAPE: Final = re.compile(
    rf"&{_UNSEEN}(?:a{_UNSEEN}m{_UNSEEN}p{_UNSEEN}(?:;{_UNSEEN})?)*+(?:\#{_UNSEEN}(?:x{_UNSEEN}0*+(?P<html>(?:{_HEX}{_UNSEEN}){{1,6}})|0*+(?P<decimal>(?:[0-9]{_UNSEEN}){{1,7}}))"
    rf"|(?P<bare>[lg]{_UNSEEN}t)|(?P<entity>[a-z](?:{_UNSEEN}[a-z0-9]){{1,31}}{_UNSEEN}(?=;)))(?:{_UNSEEN};)?"
    rf"|\\{_UNSEEN}(?:u{_UNSEEN}(?:(?:0{_UNSEEN}){{4}}(?P<long>(?:{_HEX}{_UNSEEN}){{4}})|(?P<short>(?:{_HEX}{_UNSEEN}){{4}}))"
    rf"|[ux]{_UNSEEN}\{{{_UNSEEN}0*+(?P<braced>(?:{_HEX}{_UNSEEN}){{1,6}})\}}|x{_UNSEEN}(?P<byte>(?:{_HEX}{_UNSEEN}){{2}})"
    rf"|(?P<octal>[01]{_UNSEEN}(?:[0-7]{_UNSEEN}){{2}}))"
    rf"|%{_UNSEEN}(?:2{_UNSEEN}5{_UNSEEN})*+(?:u{_UNSEEN}(?P<wide>(?:{_HEX}{_UNSEEN}){{4}})|(?P<url>(?:{_HEX}{_UNSEEN}){{2}}))"
)
_BASES: Final = {"decimal": 10, "octal": 8}
_MOST_ROUNDS: Final = 6
"""How many times escapes are undone where each stands in another."""


class Change(NamedTuple):
    """Characters of a text and what stands in their place."""

    start: int
    end: int
    instead: str


def changes(text: str) -> list[Change]:
    """What is to be changed in the text so that it has no mark that counts: of the fence, a header, a role, a control token or a turn."""
    if not _may_hold_marks(text):
        return []
    skeleton = text.translate(SKELETONS)
    escaped: dict[int, int] = {}
    if "&" in skeleton or "\\" in skeleton or "%" in skeleton:
        skeleton, escaped = _without_escapes(skeleton)
    found = {at: Change(at, escaped.get(at, at + 1), instead) for at, instead in _brackets(text, skeleton, escaped)}
    if ":" in skeleton:
        for match in _TURN.finditer("\n" + skeleton):
            start, end = match.start("role") - 1, match.end("role") - 1
            role = text[start:end]
            # "human:" in small letters is no marker; an escape's first character is no letter and counts.
            if not role[0].islower() and not role[1:].isupper():
                found[start] = Change(start, end, f"{NEUTRAL_OPEN}{role}{NEUTRAL_CLOSE}")
    return [found[at] for at in sorted(found)]


def _brackets(text: str, skeleton: str, escaped: Collection[int]) -> Iterator[tuple[int, str]]:
    """The brackets of marks, each with what stands in its place."""
    angles, squares = "<" in skeleton, "[" in skeleton or "]" in skeleton
    if angles or squares or "\u00ab" in skeleton:
        for match in _FENCE.finditer(skeleton):
            # A backslash may be a slash, or begin a name as in array<\\Context>.
            if match["after_backslash"] is None or not _is_type_argument(text, match.start(), text[slice(*match.span("after_backslash"))]):
                yield match.start(), NEUTRAL_OPEN
    if angles:
        yield from _angles(text, skeleton, escaped)
    if squares:
        for match in _BRACKETED.finditer(skeleton):
            name = text[slice(*match.span("name"))] if match["name"] is not None else ""
            if not any(map(str.islower, name)):
                yield match.start(), NEUTRAL_OPEN
        for match in _HEADER.finditer("\n" + skeleton):
            yield match.end() - 2, NEUTRAL_OPEN


def _angles(text: str, skeleton: str, escaped: Collection[int]) -> Iterator[tuple[int, str]]:
    """The angles of roles' tags and of control tokens. An escaped one is how prose writes about tags; only the fence's own name counts there."""
    for match in _TAG.finditer(skeleton):
        if match.start() not in escaped and _is_role(text, skeleton, match):
            yield match.start(), NEUTRAL_OPEN
    for match in _LLAMA_SYSTEM.finditer(skeleton):
        if match.start() not in escaped:
            yield match.start(), NEUTRAL_OPEN
            yield match.start("second"), NEUTRAL_OPEN
    if "|" in skeleton:
        for match in _CONTROL.finditer(skeleton):
            if match.start() not in escaped and _is_control(match):
                yield match.start(), NEUTRAL_OPEN
                yield match.start("end"), NEUTRAL_CLOSE


def _may_hold_marks(text: str) -> bool:
    if not text.isascii():
        return SUSPECT.search(text) is not None
    if "<" in text or "[" in text or "]" in text or "&" in text or "\\" in text or "%" in text:
        return True
    return ":" in text and ("Human" in text or "Assistant" in text or not text.replace("\n", "").replace("\t", "").isprintable())


def _without_escapes(skeleton: str) -> tuple[str, dict[int, int]]:
    """The skeleton with what its escapes stand for, each filled up to its length, and where escapes of openers begin and end."""
    escaped: dict[int, int] = {}
    known: dict[str, str] = {}

    def undone(match: re.Match[str]) -> str:
        written = match[0]
        filled = known.get(written)
        if filled is None:
            filled = known[written] = _meant(match).ljust(len(written), NOTHING)
        if filled[0] in "<[\u00ab":
            escaped[match.start()] = match.end()
        return filled

    for _ in range(_MOST_ROUNDS):
        before, skeleton = skeleton, _ESCAPE.sub(undone, skeleton)
        if before == skeleton:
            break
    return skeleton, escaped


def _meant(match: re.Match[str]) -> str:
    """The skeleton of the character that an escape stands for."""
    kind = match.lastgroup or ""
    digits = match[kind].replace(NOTHING, "")
    if kind in ("bare", "entity"):
        character = html5.get(digits + ";", "")
    else:
        code = int(digits, _BASES.get(kind, 16))
        character = chr(code) if code < 0x110000 else ""  # noqa: PLR2004 - where Unicode ends
    return character[:1].translate(SKELETONS) or NOTHING


def _is_type_argument(text: str, at: int, name: str) -> bool:
    """Whether what the bracket opens is code such as List<User> and no tag."""
    before = text[at - 1 : at]
    return (before.isalnum() or before == "_") and not (name.islower() or name.isupper())


def _is_role(text: str, skeleton: str, match: re.Match[str]) -> bool:
    start, end = match.span("name")
    if match["closed"] is None and any(map(str.isspace, skeleton[start:end])):
        return False
    return not _is_type_argument(text, match.start(), text[start:end])


def _is_control(match: re.Match[str]) -> bool:
    """Whether it is a token and not, say, the absolute value of something: with blanks beside its brackets it has a word of three letters."""
    inside = match["inside"]
    if not match["bar"] and not match["second"]:
        return False
    word = "".join(inside.replace(NOTHING, "").split())
    blank = any(map(str.isspace, match["before"] + match["after"] + inside[:1] + inside[-1:]))
    if not (match["bar"] and match["second"]) and (blank or any(map(str.isspace, inside))):
        return word in _ONE_BARRED
    return len(word) >= (3 if blank else 1) and not (blank and "\n" in inside)
