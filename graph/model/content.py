"""What a unit's text may be (U3, U10): plain text or markdown that every store can hold. HTML, JSON and binary are refused, each by its code.

HTML and JSON are decided by a markdown parser, so code, escapes and entities are what markdown says they are: ``<div>`` in a fence, in
inline code or written as ``&lt;div&gt;`` is text. Where a renderer and a browser may disagree (an unclosed comment, an unclosed block tag)
the text is refused. Links, images, emphasis and link definitions are not parsed: nothing can hide in them, and they cost the most.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from graph.model import errors, html_names
from graph.model.base import CONTROLS

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

MAX_CONTENT_BYTES = 262_144
"""Default limit of one unit's content, in bytes of UTF-8."""

MAX_BASE64_RUN = 200
"""Characters of nothing but the base64 alphabet that are still taken for text."""

MAX_MARKED_LINES = 16_384
"""Lines of a text that may hold HTML or JSON; more could not be checked in a second."""

_MAX_LEVEL = 96
_MAX_QUOTE_MARKS = 32_768
_MAX_NESTING = 100
_JSON_BUDGET = 4 * MAX_CONTENT_BYTES
_FAR_TAGS = 64
_FAR, _NEAR = 65_536, 1_024

_INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060"

_MAYBE_HTML = re.compile(r"(?<!\\)(?:\\\\)*+<[A-Za-z/!?]")
_MAYBE_JSON = re.compile(r"\{\s*+[\"}]|\[\s*+(?:[\"{\[\d-]|true|false|null|NaN|Infinity)")
_QUOTED_LINE = re.compile(r"^[ \t>*+.)0-9-]*+", re.MULTILINE)
_BLOCK_HTML = re.compile(r"<(?:!--|\?|![A-Za-z]|!\[CDATA\[|/?([A-Za-z][A-Za-z0-9-]*)(?=\s|/?>|\Z))")
# As browsers read it, not as CommonMark does: a slash parts attributes too, a closing quote needs no space after it, and a name that has a
# value may hold anything. A bare word must look like an attribute, so that `a <b && c> d` stays a comparison.
_VALUE = r"""(?:[^\s"'=<>`]++|'[^']*+(?:'|\Z)|"[^"]*+(?:"|\Z))"""
_ATTRIBUTE = rf"""(?:[\s/]*+[^\s"'<>/=`]++\s*+=\s*+{_VALUE}|[\s/]++[A-Za-z_:][A-Za-z0-9_.:-]*+)"""
_TAG = re.compile(rf"<(/?)([A-Za-z][A-Za-z0-9-]*+)(?![^\s/>])((?:{_ATTRIBUTE})*+)[\s/]*+(?:>|\Z)")
_AUTOLINK = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]{1,31}:[^<>\x00-\x20]*+|[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]++@[A-Za-z0-9.-]++)>")
_BETWEEN_JSON = re.compile(r"[\s,;]*")
_JSON = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, strict=False)

_RUN = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{%d,}+" % (MAX_BASE64_RUN + 1))  # noqa: UP031 - braces of the pattern
_WRAPPED = re.compile(r"^(?:[ \t>]*+[A-Za-z0-9+/]{48,200}+\r?\n){3,}[ \t>]*[A-Za-z0-9+/]*+={0,2}", re.MULTILINE)
_DATA_URI = re.compile(r"data:[\w.+-]{0,64}/?[\w.+-]{0,64}(?:;[\w=.+-]{1,64}){0,4};base64,[A-Za-z0-9+/_=%-]{40,}+", re.IGNORECASE)
_JWT = re.compile(r"(?<![\w-])eyJ[\w-]{10,2000}+\.[\w-]{10,4000}+\.[\w-]{0,1000}+")
_WORDS = re.compile(r"[A-Z]?[a-z]{3,}|(?<![A-Za-z0-9])[A-Z]{2,20}(?![A-Za-z0-9])")
_WORDY = 0.45
_SHORTEST_RUN = 48
"""Characters without a space that every pattern of binary needs: 48 of a wrapped line, 13 and 40 of a data URI."""
_HEX_DIGESTS = frozenset({64, 96, 128})

_lock = threading.Lock()
_parser: list[MarkdownIt] = []


def check_content(text: str, max_bytes: int = MAX_CONTENT_BYTES) -> None:
    """Nothing when ``text`` may be the content of a unit.

    Raises ContentTooLarge (over ``max_bytes`` of UTF-8), LoneSurrogate, NulInText, ContentEmpty, ContentIsBinary, ContentIsJson,
    ContentIsHtml or ContentTooDeep. Takes under a second for any 256 KB; call it off the event loop.
    """
    if len(text) > max_bytes:
        raise errors.ContentTooLarge
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise errors.LoneSurrogate from None
    if size > max_bytes:
        raise errors.ContentTooLarge
    if "\x00" in text:
        raise errors.NulInText
    if not text.strip().strip(_INVISIBLE).strip():
        raise errors.ContentEmpty
    if CONTROLS.search(text) or next(binary_runs(text), None):
        raise errors.ContentIsBinary
    check_markup(text)


def check_markup(text: str) -> None:
    """The part of the rules that a markdown parser decides.

    Raises ContentIsJson, ContentIsHtml, ContentTooDeep, or ContentTooLarge for over ``MAX_MARKED_LINES`` lines with a mark of HTML or JSON.
    """
    # The marks by themselves first: looking for one character is many times as fast as a pattern, and most texts have none.
    maybe_html = "<" in text and _MAYBE_HTML.search(text)
    if not maybe_html and not (("{" in text or "[" in text) and _MAYBE_JSON.search(text)):
        return
    if text.count("\n") + text.count("\r") > MAX_MARKED_LINES:
        raise errors.ContentTooLarge("The content has more lines than can be checked.")
    if text.count(">") > _MAX_QUOTE_MARKS and sum(line.count(">") for line in _QUOTED_LINE.findall(text)) > _MAX_QUOTE_MARKS:
        raise errors.ContentTooDeep
    json_check = _JsonCheck()
    json_check.whole(text)
    parser = _markdown()
    env: dict[str, Any] = {"tags": 0}
    for token in _blocks(text, parser, env):
        if token.level >= _MAX_LEVEL:
            raise errors.ContentTooDeep
        if token.type == "inline":
            json_check.part(token.content)
            if "<" in token.content:
                parser.inline.parse(token.content, parser, env, [])


def top_level_blocks(text: str) -> list[tuple[int, int]]:
    """Line ranges (first, after last; from 0) of the outermost markdown blocks. HTML blocks are paragraphs here."""
    tokens = _blocks(text, _markdown(), {"quiet": True})
    return [(token.map[0], token.map[1]) for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]


def binary_runs(text: str) -> Iterator[tuple[int, int]]:
    """Where (start, end) something stands that is not made of words: long base64 or hex, wrapped or not, and base64 ``data:`` URIs.

    Long paths and identifiers, rules (``=====``), numbers, JSON web tokens and lists of digests are text.
    """
    if max(map(len, text.split()), default=0) < _SHORTEST_RUN:
        return  # most texts: ten times as fast as looking for each pattern
    found = [match.span() for match in _DATA_URI.finditer(text)]
    tokens: list[tuple[int, int]] | None = None
    for match in _RUN.finditer(text):
        if _is_wordy(match[0]):
            continue
        if tokens is None:
            tokens = [token.span() for token in _JWT.finditer(text)]
        if not any(start <= match.start() and match.end() <= end for start, end in tokens):
            found.append(match.span())
    for match in _WRAPPED.finditer(text):
        lines = [line.strip(" \t>\r") for line in match[0].split("\n")]
        widths = {len(line) for line in lines[:-1]}
        digests = widths <= _HEX_DIGESTS and all(re.fullmatch(r"[0-9a-fA-F]*", line) for line in lines)
        if len(widths) == 1 and not digests and not _is_wordy("".join(lines)):
            found.append(match.span())
    end = 0
    for start, stop in sorted(found):
        if stop > end:
            yield max(start, end), stop
            end = stop


def _is_wordy(run: str) -> bool:
    letters = sum(character.isalnum() for character in run)
    if letters == 0 or run.isdigit():
        return True
    return sum(len(word) for word in _WORDS.findall(run)) >= _WORDY * letters


class _JsonCheck:
    """Finds paragraphs that are JSON, also when blank lines split one value over several of them."""

    def __init__(self) -> None:
        self.open = ""
        self.spent = 0

    def whole(self, text: str) -> None:
        self._is_open(text)

    def part(self, content: str) -> None:
        """One paragraph, heading or table cell, in the order of the text."""
        if self.open:
            self.open = f"{self.open}\n{content}" if self._is_open(f"{self.open}\n{content}") else ""
        if not self.open and self._is_open(content):
            self.open = content

    def _is_open(self, text: str) -> bool:
        """Whether the text is the beginning of JSON that has not ended; raises when it is JSON and nothing else."""
        at = len(text) - len(text.lstrip(" \t\r\n" + _INVISIBLE))
        if text[at : at + 1] not in {"{", "["}:
            return False
        self.spent += len(text)
        if self.spent > _JSON_BUDGET:
            raise errors.ContentIsJson
        refused = False
        try:
            while at < len(text):
                value, at = _JSON.raw_decode(text, at)
                refused = refused or _is_data(value)
                at = _after_gap(text, at)
        except RecursionError:
            raise errors.ContentTooDeep from None
        except json.JSONDecodeError as failure:
            return failure.msg.startswith("Unterminated string") or not text[failure.pos :].strip()
        if refused:
            raise errors.ContentIsJson
        return False


def _after_gap(text: str, at: int) -> int:
    gap = _BETWEEN_JSON.match(text, at)
    end = gap.end() if gap else at
    return len(text) if not text[end:].strip(_INVISIBLE) else end


def _is_data(value: object) -> bool:
    """``[1]`` is a citation and ``[]`` an empty box; an object, several items or nested ones are data."""
    if isinstance(value, list):
        return len(value) > 1 or any(isinstance(item, dict | list) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return isinstance(value, dict)


def _blocks(text: str, parser: MarkdownIt, env: dict[str, Any]) -> list[Token]:
    tokens: list[Token] = []
    parser.block.parse(text.replace("\r\n", "\n").replace("\r", "\n"), parser, env, tokens)
    return tokens


def _markdown() -> MarkdownIt:
    """The one parser, made and warmed before others can see it: its rules are compiled on first use, which is not safe to share."""
    with _lock:
        if not _parser:
            from markdown_it import MarkdownIt  # noqa: PLC0415 - 30 ms that a start without units need not pay

            parser = MarkdownIt("commonmark", {"html": True, "maxNesting": _MAX_NESTING}).enable("table")
            parser.disable(["link", "image", "emphasis", "reference"])
            parser.block.ruler.at("html_block", _html_block, {"alt": ["paragraph", "reference", "blockquote"]})
            parser.inline.ruler.at("autolink", _autolink)
            parser.inline.ruler.at("html_inline", _html_inline)
            parser.parse("- a < b\n\n> `c`\n\n|d|\n|-|\n|e|\n")
            _parser.append(parser)
        return _parser[0]


def _html_block(state: StateBlock, line: int, _end: int, _silent: bool) -> bool:
    """Raises where a block of HTML starts. ``<T>`` alone in a line starts none here, so that what follows it is looked at too."""
    start = state.bMarks[line] + state.tShift[line]
    if state.src[start : start + 1] != "<" or state.is_code_block(line) or "quiet" in state.env:
        return False
    found = _BLOCK_HTML.match(state.src, start, state.eMarks[line])
    if found and (found[1] is None or found[1].lower() in _block_names()):
        raise errors.ContentIsHtml
    return False


def _block_names() -> frozenset[str]:
    from markdown_it.common.html_blocks import block_names  # noqa: PLC0415 - loaded with the parser

    return html_names.SWALLOWING | {*block_names, "pre", "textarea"}


def _autolink(state: StateInline, _silent: bool) -> bool:
    """``<https://…>`` and ``<somebody@…>`` are text; what stands in them opens no code."""
    found = _AUTOLINK.match(state.src, state.pos) if state.src[state.pos] == "<" else None
    if found is None:
        return False
    state.pending += found[0]
    state.pos = found.end()
    return True


def _html_inline(state: StateInline, _silent: bool) -> bool:
    """Raises at the first tag of HTML; otherwise the ``<`` is text."""
    src, at = state.src, state.pos
    if src[at] != "<":
        return False
    after = src[at + 1 : at + 9]
    if after[:1] == "!":
        declared = after[1:2].isalpha() and (after[1:].upper() == "DOCTYPE" or ">" in src[at : at + _NEAR])
        if after.startswith(("!--", "![CDATA[")) or declared:
            raise errors.ContentIsHtml
    elif after[:1] == "?":
        if after[1:2].isalpha() or after[1:2] == "=" or "?>" in src[at : at + _NEAR]:
            raise errors.ContentIsHtml
    elif after[:1] == "/" or after[:1].isalpha():
        _refuse_tag(state)
    return False


def _refuse_tag(state: StateInline) -> None:
    # A tag that never ends is looked for only so far, so that thousands of them cost little. One that reaches that far is refused.
    src, at = state.src, state.pos
    state.env["tags"] += 1
    end = min(len(src), at + (_FAR if state.env["tags"] <= _FAR_TAGS else _NEAR))
    tag = _TAG.match(src, at, end)
    if tag is None or (tag.end() == len(src) and not tag[0].endswith(">")):
        return
    closing, name, attributes = tag[1], tag[2], tag[3]
    if "-" in name:
        raise errors.ContentIsHtml
    if name.lower() not in html_names.ELEMENTS:
        return
    # List<Object> and Option<Data> are types: a capitalised name right after a word, with nothing else inside.
    generic = at > 0 and (src[at - 1].isalnum() or src[at - 1] == "_") and name != name.upper() and name[0].isupper()
    if generic and not closing and not attributes and name.lower() not in html_names.SWALLOWING:
        return
    raise errors.ContentIsHtml
