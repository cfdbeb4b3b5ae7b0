"""Any text of a transcript as a text that a unit may hold, with notes of what was changed. A note never repeats the text."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from pydantic import JsonValue

from adapters.importers.json_literals import DuplicateKey, decode
from adapters.importers.markdown_writer import json_to_markdown
from graph.model import errors
from graph.model.content import CONTROLS, MAX_CONTENT_BYTES, MAX_MARKED_LINES, binary_runs, check_content, check_markup, top_level_blocks

EMPTY: Final = "(empty)"
_RESERVE: Final = 256
_MAX_OPENED: Final = 3
_COLOURS: Final = re.compile(r"\x1b\[[0-9;:]*m")
_SURROGATES: Final = re.compile(r"[\ud800-\udfff]")
_SYMBOLS: Final = {chr(code): chr(0x2400 + code) for code in range(0x20)} | {"\x7f": "\u2421", "\x85": "\n"}
_INVISIBLE: Final = "\ufeff\u200b\u200c\u200d\u2060 \t\r\n"

NOTE_JSON: Final = "JSON became markdown"
NOTE_OPENED: Final = "a JSON string became its text"
NOTE_FENCED: Final = "HTML or JSON was put into a code block"
NOTE_CONTROLS: Final = "control characters were made visible"
NOTE_COLOURS: Final = "terminal colours were removed"
NOTE_SURROGATES: Final = "halves of surrogate pairs were replaced"
NOTE_BINARY: Final = "encoded binary data was replaced by its size and SHA-256"
NOTE_CUT: Final = "a text over the limit was cut"
NOTE_EMPTY: Final = "an empty text was marked as such"


def tool_text(content: str, max_bytes: int = MAX_CONTENT_BYTES) -> tuple[str, list[str]]:
    """What a tool returned: JSON, or JSON lines, as markdown; other text by ``neutral_text``. The result passes ``check_content``."""
    notes: list[str] = []
    for _ in range(_MAX_OPENED):
        try:
            value = _json_of(content)
        except ValueError:
            break
        if isinstance(value, str):
            content, notes = value, [NOTE_OPENED]
            continue
        if isinstance(value, dict | list):
            content, notes = json_to_markdown(value), [*notes, NOTE_JSON]
        break
    text, changed = neutral_text(content, max_bytes)
    return text, notes + changed


def neutral_text(text: str, max_bytes: int = MAX_CONTENT_BYTES) -> tuple[str, list[str]]:
    """The text, changed where ``check_content`` would refuse it, and what was changed.

    Controls become visible symbols, halves of surrogate pairs U+FFFD, base64 its size and SHA-256, a whole text of JSON markdown, other
    JSON and HTML a code block; a text over ``max_bytes`` ends with how much of it was left out.
    """
    notes: list[str] = []
    text = _storable(text, notes)
    if not text.strip(_INVISIBLE) or not text.strip():
        return EMPTY, [*notes, NOTE_EMPTY]
    try:
        check_content(text, max_bytes)
    except (errors.ContentRefused, errors.ContentTooLarge) as refused:
        text = _acceptable(text, refused, max_bytes, notes)
    return text, notes


def _json_of(content: str) -> JsonValue:
    """The value of a text that is JSON or JSON lines; raises ValueError for any other, and when a key stands twice."""
    stripped = content.strip(_INVISIBLE)
    if stripped[:1] not in {"{", "[", '"'}:
        raise ValueError
    try:
        return decode(stripped)
    except RecursionError:
        raise ValueError from None
    except DuplicateKey:
        raise
    except ValueError:
        lines = [line for line in stripped.splitlines() if line.strip()]
        values = [decode(line) for line in lines if line.lstrip()[:1] == "{"] if stripped[0] == "{" else []
        if len(values) != len(lines) or len(lines) <= 1:
            raise
        return values


def _storable(text: str, notes: list[str]) -> str:
    if not text.isascii() and _SURROGATES.search(text):
        text = _SURROGATES.sub("\ufffd", text)
        notes.append(NOTE_SURROGATES)
    if "\x1b[" in text and _COLOURS.search(text):
        text = _COLOURS.sub("", text)
        notes.append(NOTE_COLOURS)
    if "\x00" in text or CONTROLS.search(text):
        text = CONTROLS.sub(_visible, text).replace("\x00", "\u2400")
        notes.append(NOTE_CONTROLS)
    runs = list(binary_runs(text))
    if runs:
        parts, end = list[str](), 0
        for start, stop in runs:
            digest = hashlib.sha256(text[start:stop].encode()).hexdigest()
            parts += [text[end:start], f"(encoded data, {stop - start} characters, sha256 {digest})"]
            end = stop
        text = "".join([*parts, text[end:]])
        notes.append(NOTE_BINARY)
    return text


def _visible(found: re.Match[str]) -> str:
    return _SYMBOLS.get(found[0], "\u2426")


def _acceptable(text: str, refused: errors.LastroError, max_bytes: int, notes: list[str]) -> str:
    """Tries the gentlest change first: whole JSON to markdown, blocks in a fence, all in a fence, and each time less of the text."""
    if isinstance(refused, errors.ContentIsJson):
        try:
            value = _json_of(text)
        except ValueError:
            value = None
        if value is not None:
            notes.append(NOTE_JSON)
            said, more = neutral_text(json_to_markdown(value), max_bytes)
            notes += more
            return said
    size = len(text.encode())
    keep = size if size <= max_bytes else max_bytes - _RESERVE
    while keep > 0:
        kept = _cut(text, keep)
        rest = size - len(kept.encode())
        note = f"\n\n({rest} of {size} bytes were left out here.)" if rest else ""
        for change in (_as_it_is, _fence_blocks, _fence):
            said = change(kept) + note
            try:
                check_content(said, max_bytes)
            except (errors.ContentRefused, errors.ContentTooLarge):
                continue
            notes += [NOTE_CUT] if rest else []
            notes += [NOTE_FENCED] if change is not _as_it_is else []
            return said
        keep = min(keep - _RESERVE, len(kept.encode()) - 1) if keep > max_bytes - 2 * _RESERVE else keep // 2
    digest = hashlib.sha256(text.encode()).hexdigest()
    notes.append(NOTE_CUT)
    return f"(a text of {size} bytes, sha256 {digest}, was left out)"


def _cut(text: str, keep: int) -> str:
    """At most so many bytes and lines of the text, whole lines when the last is near."""
    lines = text.split("\n")
    if len(lines) > MAX_MARKED_LINES - 8:
        text = "\n".join(lines[: MAX_MARKED_LINES - 8])
    raw = text.encode()
    if len(raw) <= keep:
        return text
    cut = raw[:keep].decode("utf-8", errors="ignore")
    whole = cut.rfind("\n")
    return cut[:whole] if whole > len(cut) * 0.9 else cut


def _as_it_is(text: str) -> str:
    return text


def _fence(text: str) -> str:
    """The text in a code block that nothing in it can close."""
    longest = {mark: max(map(len, re.findall(rf"{mark}{{3,}}", text)), default=2) for mark in "`~"}
    mark = "~" if longest["~"] < longest["`"] else "`"
    rule = mark * (longest[mark] + 1)
    return f"{rule}\n{text}\n{rule}"


def _fence_blocks(text: str) -> str:
    """The outermost blocks that are refused, each in a code block."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    out: list[str] = []
    end = 0
    for start, stop in top_level_blocks(text):
        block = "\n".join(lines[start:stop])
        try:
            check_markup(block)
        except (errors.ContentRefused, errors.ContentTooLarge):
            block = _fence(block.rstrip("\n")) + "\n" * (len(block) - len(block.rstrip("\n")))
        out += [*lines[end:start], block]
        end = max(end, stop)
    return "\n".join([*out, *lines[end:]])
