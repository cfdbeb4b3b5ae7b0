"""The content rules (U3, U10): what passes, what is refused by which code, and that no text takes long or fails in another way."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.model import content, errors
from graph.model.content import MAX_CONTENT_BYTES, binary_runs, check_content

SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
RANDOM_BYTES = random.Random(7).randbytes(300)  # noqa: S311 - the same bytes each time
BASE64 = base64.b64encode(RANDOM_BYTES).decode()
JWT = f"eyJhbGciOiJSUzI1NiJ9.{BASE64[:300].replace('+', '-').replace('/', '_')}.{BASE64[:80].replace('+', '-').replace('/', '_')}"


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "List<String> and Map<K,V>, Option<T>, Vec<u8>",
        "List<Object>, Promise<Button> and Option<Data> are types",
        "a < b and c > d; if a <b && c> d; <b c, d>",
        "x<y>z",
        "<T>",
        "see <https://example.org/a?b=<c>> and <mailto:somebody@example.org>, or <somebody@example.org>",
        "&lt;div&gt; is written so, or \\<div>",
        "inline `<div>` and ``<script>`` code",
        "```html\n<div>\n```",
        "~~~\n{}\n<script>\n",
        "    <div>indented code</div>",
        "> ```\n> <div>\n> ```",
        "[1]",
        "as [1] and [2, 3] say",
        "- [ ] open\n- [x] done",
        "[]",
        'the answer {"a": 1} stands inside a sentence',
        '- key: {"a": 1} is no item of its own',
        "```json\n{}\n```",
        "{'python': 'literal'}",
        "{not json}",
        "{",
        "[[wiki link]]",
        "| a | b |\n|-|-|\n| 1 | [1] |",
        "árvore 漢字 שלום 👨‍👩‍👧 e\u0301 \u202eRTL",
        "tab\tline\r\nend",
        "=" * 400 + "\n" + "-" * 400,
        "_" * 300,
        "/srv/application/releases/current/modules/checkout/service/internal/handlers/payments/connection/pool" * 3,
        "some_very_long_identifier_" * 12,
        SHA,
        "\n".join([SHA] * 6),
        "7" * 400,
        "x" * 5_000,
        f"token {JWT} end",
        "data:image/png;base64,… is how such links begin",
    ],
)
def test_text_and_markdown_pass(text: str) -> None:
    check_content(text)


@pytest.mark.parametrize(
    "text",
    [
        "<br>",
        "a<br/>b",
        "one <b>bold</b> word",
        "<div>",
        "<DIV CLASS=x>",
        "</span>",
        "<script>alert(1)</script>",
        "a List<Script> of them",
        "word<Img src=x onerror=alert(1)>",
        "<!-- hidden -->",
        "text <!-- hidden",
        "<!DOCTYPE html>",
        "see <!doctype html> there",
        "<![CDATA[x]]>",
        "<?xml version='1.0'?>",
        "a <?php echo 1; ?> b",
        "<my-element>",
        "text <x-y z=1>",
        "<div\nclass='a'>",
        "text <a\nhref='x'\n>link</a>",
        "<div\n\nopen",
        "# title <b>x</b>",
        "title <i>x</i>\n=====",
        "|a|b|\n|-|-|\n|1|<br>|",
        "|a <em>b</em>|\n|-|\n|1|",
        "> quoted\n> <p>x</p>",
        "- item\n  - <ul>",
        "1. > - <hr>",
        "```\ncode\n```\n<div>",
        "> ```\n> open fence ends with its quote\n\n<div>",
        "<T>\n<div>",
        "<T>\nx <script src=y>",
        '[a]: /url "<div>"',
        "[a](<b c=d>)",
        "![a](b) <img src=x>",
        "**<b>x</b>**",
        "`a <b>x</b>",
        "<https://x/`> <b> `",
        "\\\\<div>",
        "<svg/onload=alert(1)>",
        "<img src='x'onerror=alert(1)>",
        "<a @click='x' (y)=z>",
        "<br/ >",
        f"<a title='{'x' * 300_0}'>",
        "x <b " + "word " * 40_000 + ">",
    ],
)
def test_html_is_refused(text: str) -> None:
    with pytest.raises(errors.ContentIsHtml):
        check_content(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        "{}",
        "[1, 2]",
        "[[1]]",
        '[{"a": 1}]',
        ' \n{"a": 1}\n',
        '\ufeff{"a": 1}',
        '\u200b\ufeff {"a": 1}\u200b',
        'before\n\n{"a": 1}\n\nafter',
        '- first\n- {"a": 1}',
        '- {"a":\n  1}',
        '> {"a": 1}',
        '1. > - {"a": [1]}',
        '# {"a": 1}',
        '{"a": 1}\n---',
        '|a|\n|-|\n|{"b": 1}|',
        '{"a": 1}\n{"b": 2}',
        'text\n\n{"a": 1}\n{"b": 2}\n',
        '{"a": 1}, {"b": 2}',
        '{"a": 1,\n\n"b": 2}',
        'text\n\n{"a": [\n\n1,\n\n2\n\n]}\n\nmore',
        '> {"a":\n>\n> 1}',
        '{"a": 1, "a": 2}',
        '{"a": NaN, "b": -Infinity}',
        '{"a": ' + "9" * 6_000 + "}",
        '{"a": 1e999999}',
        '{"a": "line\nbreak"}',
        json.dumps({"a": "é"}),
        json.dumps([{"a": [1, 2, {"b": None}]}] * 50, indent=2),
    ],
)
def test_json_is_refused(text: str) -> None:
    with pytest.raises(errors.ContentIsJson):
        check_content(text)


@pytest.mark.parametrize(
    "text",
    [
        "\x01",
        "esc \x1b[31m",
        "form\x0cfeed",
        "del\x7f",
        "c1 \x85",
        BASE64,
        "A" * 201,
        "QUJD" * 60,
        f"an image: {BASE64} follows",
        f"```\n{BASE64}\n```",
        BASE64.replace("+", "-").replace("/", "_"),
        RANDOM_BYTES.hex(),
        "\n".join(BASE64[at : at + 76] for at in range(0, 380, 76)),
        f"![x](data:image/png;base64,{BASE64[:80]})",
    ],
)
def test_binary_is_refused(text: str) -> None:
    with pytest.raises(errors.ContentIsBinary):
        check_content(text)


@pytest.mark.parametrize("text", ["", " \t\r\n", "\u00a0", "\ufeff\u200b "])
def test_empty_is_refused(text: str) -> None:
    with pytest.raises(errors.ContentEmpty):
        check_content(text)


def test_nul_and_surrogates_have_their_own_codes() -> None:
    with pytest.raises(errors.NulInText):
        check_content("a\x00b")
    with pytest.raises(errors.LoneSurrogate):
        check_content("half \ud83d of it")


def test_size_is_counted_in_bytes() -> None:
    check_content("é" * 10, max_bytes=20)
    with pytest.raises(errors.ContentTooLarge):
        check_content("é" * 10 + "a", max_bytes=20)
    check_content("word " * 52_428)
    with pytest.raises(errors.ContentTooLarge):
        check_content("word " * 52_429)


@pytest.mark.parametrize(
    "text",
    [
        ">" * 200 + " <div>",
        "- " * 100 + "<b>x</b>",
        "> - " * 60 + '{"a": 1}',
        "[" * 100_000,
        '{"a":' * 50_000,
        "text\n\n" + "[" * 5_000,
    ],
)
def test_what_nests_too_deep_to_be_checked_is_refused(text: str) -> None:
    with pytest.raises(errors.ContentTooDeep):
        check_content(text)


def test_depth_below_the_limit_is_looked_at() -> None:
    check_content("- " * 40 + "a < b `<b>`")
    with pytest.raises(errors.ContentIsHtml):
        check_content("- " * 40 + "<b>x</b>")


@given(st.text(max_size=400))
def test_any_text_passes_or_is_refused_by_the_rules(text: str) -> None:
    with contextlib.suppress(errors.ContentRefused, errors.ContentTooLarge):
        check_content(text)


@settings(max_examples=300)
@given(st.text(alphabet="<>/!?-[]{}(),:;\"'`~#=|>*+&\\ \t\n1aAbdiv\x00\x7f\ufeff\ud800", max_size=120))
def test_any_mix_of_marks_passes_or_is_refused_by_the_rules(text: str) -> None:
    with contextlib.suppress(errors.ContentRefused, errors.ContentTooLarge):
        check_content(text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_script_in_a_paragraph_of_its_own_never_passes_outside_code(before: str, after: str) -> None:
    plain = before.replace("`", "").replace("~", "").replace("\\", "")
    if any(line.startswith((" ", "\t")) for line in plain.splitlines()):
        plain = plain.replace(" ", "").replace("\t", "")
    with pytest.raises((errors.ContentRefused, errors.ContentTooLarge)):
        check_content(f"{plain}\n\n<script>{after}</script>")


def test_binary_runs_say_where() -> None:
    text = f"before {BASE64} between {BASE64} after"
    assert [text[start:end] for start, end in binary_runs(text)] == [BASE64, BASE64]


def _filled(part: str) -> str:
    return (part * (MAX_CONTENT_BYTES // len(part) + 1))[: MAX_CONTENT_BYTES - 12] + "\n\n`<b> [1` "


WORST = [
    *"`<[{(*_>#-+|!&\\~=:\"'\n]}",
    *("- a\n", "- <\n", "- [ ] a\n", "1. a\n", "> ", "> > > <\n", "|<|[|\n", "<!--", "<!-", "x <!", "<?", "</", "<a ", "<a b b b "),
    *("[1,\n\n", "[\n\n", '{"a":\n\n', "`a``b```c", '<a b="<a b=" c="', "<a b='\" c='\"", "<T>\n", "&lt;", "\\<", "[x]: <\n"),
    *("eyJaaaaaaaaaaaa.aaaaaaaaaaaaaaa ", "A" * 200 + " ", "data:a/b;a=b;", "<a@b.c> ", "<https://", "# <\n", "<\n=\n"),
]


@pytest.mark.parametrize("part", WORST)
def test_the_worst_text_takes_about_a_second_at_most(part: str) -> None:
    whole = _filled(part)
    lines = whole.split("\n")[: content.MAX_MARKED_LINES - 8]
    for text in (whole, "\n".join(lines) + "\n\n`<b> [1` "):
        started = time.process_time()
        with contextlib.suppress(errors.ContentRefused, errors.ContentTooLarge):
            check_content(text, max_bytes=2 * MAX_CONTENT_BYTES)
        assert time.process_time() - started < 3


@pytest.mark.parametrize(
    "text",
    [
        "[\n\n" * 900 + "1," * 125_000,
        "[1," * 900 + "1,\n\n" * 60_000,
        "<b word word word word " * 11_000,
        "\n".join(">" * 90 + " <b" for _ in range(360)),
        "- " * 45 + "a\n" + (" " * 90 + "- b <b\n\n") * 2_600,
    ],
    ids=["open lists", "nested lists", "tags without end", "quotes", "items"],
)
def test_texts_made_to_be_slow_are_not(text: str) -> None:
    started = time.process_time()
    with contextlib.suppress(errors.ContentRefused, errors.ContentTooLarge):
        check_content(text, max_bytes=2 * MAX_CONTENT_BYTES)
    assert time.process_time() - started < 3


def test_many_lines_that_need_the_parser_are_refused_and_without_marks_pass() -> None:
    check_content("- 1\n" * 40_000)
    with pytest.raises(errors.ContentTooLarge):
        check_content("- 1\n" * 40_000 + "`<b>`")


def test_threads_share_the_parser() -> None:
    outcomes: list[str] = []

    def work() -> None:
        for text in ("a <b>c</b>", "`<b>`", '- {"a": 1}'):
            try:
                check_content(text)
                outcomes.append("passed")
            except errors.ContentRefused as refused:
                outcomes.append(refused.code)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == sorted(["content_is_html", "passed", "content_is_json"] * 8)
