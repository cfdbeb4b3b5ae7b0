"""JSON as markdown: every value comes back, the text passes the content rules, and any text becomes neutral."""

from __future__ import annotations

import base64
import json
import math
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pydantic import JsonValue

from adapters.importers.json_literals import NumberAsWritten, decode, encode
from adapters.importers.markdown import json_to_markdown, markdown_to_json, neutral_text, tool_text
from adapters.importers.markdown_writer import MAX_DEPTH
from graph.model import errors
from graph.model.content import check_content

BASE64 = base64.b64encode(random.Random(3).randbytes(900)).decode()  # noqa: S311 - the same bytes each time

TEXTS = st.one_of(
    st.text(max_size=12),
    st.text(alphabet='"[]{}|;:.\\`<>#-+*=~_ \n\ttrue1eE0\x00\x85\ud800\ufeff', max_size=10),
    st.sampled_from(
        [
            *(
                "true",
                "null",
                "NaN",
                "-Infinity",
                "1",
                "-0",
                "1.10",
                "1e5",
                "0123",
                "[]",
                "{}",
                "(empty object)",
                '"',
                '""',
                "\\",
                "\\n",
                "a\\",
            ),
            *("- a", "1. a", "a: b", "a:", ": a", "#", "|", "<div>", "<!-- x", "`<b>`", "```", "~~~", "---", "a; b", "[a; b]", "{a: b}"),
            *(
                " a",
                "a ",
                "\n",
                "é",
                "漢字",
                "👨‍👩‍👧",
                '{"a": 1}',
                "a|b",
                "a.b",
                "https://example.org/?a=b",
                "===",
                "\u2028",
                "2024-05-15T15:00:00",
            ),
        ]
    ),
)
SCALARS = st.one_of(TEXTS, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False))
ROWS = st.dictionaries(st.sampled_from(["a", "b", "c.d", "#", "", "e"]), SCALARS | st.dictionaries(TEXTS, SCALARS, max_size=2), max_size=4)
VALUES = st.recursive(
    st.one_of(
        SCALARS, st.lists(ROWS, max_size=4), st.dictionaries(TEXTS, ROWS, max_size=3), st.lists(st.lists(ROWS, max_size=3), max_size=3)
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def _same(left: JsonValue, right: JsonValue) -> bool:
    """Equal with types: 1 is not 1.0, True is not 1, -0.0 is not 0.0."""
    return encode(left) == encode(right) and left == right


def _sorted(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=600)
@given(VALUES)
def test_every_value_comes_back(value: JsonValue) -> None:
    text = json_to_markdown(value)
    assert _same(_sorted(markdown_to_json(text)), _sorted(value))
    check_content(text)


@settings(max_examples=100)
@given(st.integers(0, 60), st.lists(st.booleans(), min_size=60, max_size=60), VALUES)
def test_nested_values_come_back(levels: int, in_list: list[bool], value: JsonValue) -> None:
    for is_list in in_list[:levels]:
        value = [value] if is_list else {"k": value}
    text = json_to_markdown(value)
    assert _same(_sorted(markdown_to_json(text)), _sorted(value))
    check_content(text)


def test_objects_are_lists_and_like_objects_a_table() -> None:
    value = decode(
        '{"id": "HAT1", "zip": "78750", "paid": 1.10, "open": true, "who": {"first": "Mia", "last": "Li"}, "tags": ["a", "b"],'
        '"flights": [{"from": "JFK", "seats": {"economy": 3, "business": 0}}, {"from": "SEA", "seats": {"economy": 7, "business": 1}}]}'
    )
    assert json_to_markdown(value).splitlines() == [
        "- id: HAT1",
        '- zip: "78750"',
        "- paid: 1.10",
        "- open: true",
        "- who: {first: Mia; last: Li}",
        "- tags: [a; b]",
        "- flights:",
        "  from|seats.economy|.business",
        "  -|-|-",
        "  JFK|3|0",
        "  SEA|7|1",
    ]
    assert markdown_to_json(json_to_markdown(value)) == value


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ([{"n": "- a", "m": 1}, {"n": "b", "m": 2}], ["|n|m|", "|-|-|", "|- a|1|", "|b|2|"]),
        ([{"n": "1. a", "m": 1}, {"n": "b", "m": 2}], ["|n|m|", "|-|-|", "|1. a|1|", "|b|2|"]),
        ([{"n": 1.5, "m": 1}, {"n": 2.5, "m": 2}], ["n|m", "-|-", "1.5|1", "2.5|2"]),
        ([{"n": 1, "m": 1}, {"n": -2, "m": 2}], ["|n|m|", "|-|-|", "|1|1|", "|-2|2|"]),
        ([{"n": 2}, {"n": 3}, {"n": 4}], ["|n|", "|-|", "|2|", "|3|", "|4|"]),
        ([{".a": 1, "b.c": 2}, {".a": 3, "b.c": 4}], ["\\.a|b\\.c", "-|-", "1|2", "3|4"]),
        ([{"p": {"": 1, "x": 2}}, {"p": {"": 3, "x": 4}}], ['p.""|.x', "-|-", "1|2", "3|4"]),
        ({"passengers": [{"name": "Mia", "seat": "4A"}]}, ["- passengers: [{name: Mia; seat: 4A}]"]),
    ],
)
def test_a_table_has_pipes_around_it_only_where_it_needs_them(value: JsonValue, lines: list[str]) -> None:
    assert json_to_markdown(value).splitlines() == lines
    assert markdown_to_json(json_to_markdown(value)) == value


@given(st.lists(st.fixed_dictionaries({"a": TEXTS, "b": TEXTS | st.integers()}, optional={"c": TEXTS}), min_size=3, max_size=6))
def test_a_reader_of_markdown_sees_a_table_with_every_cell(rows: list[JsonValue]) -> None:
    text = json_to_markdown(rows)
    lines = text.split("\n")
    if not re.fullmatch(r"[-|]+", lines[1]):
        return
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert [token.type for token in tokens if token.level == 0] == ["table_open", "table_close"]
    cells = [token.type for token in tokens if token.type in {"th_open", "td_open"}]
    columns = lines[1].count("-")
    assert cells == ["th_open"] * columns + ["td_open"] * (columns * len(rows))


def test_a_missing_key_an_empty_text_and_null_differ_in_a_table() -> None:
    value: JsonValue = [{"a": 1, "b": ""}, {"a": 2, "b": None}, {"a": 3}, {"a": 4, "b": "null"}, {"a": 5, "b": []}, {"a": 6, "b": "x|y"}]
    text = json_to_markdown(value)
    assert text.splitlines()[2:] == ['|1|""|', "|2|null|", "|3||", '|4|"null"|', "|5|[]|", "|6|x\\|y|"]
    assert markdown_to_json(text) == value


def test_lists_of_tables_and_objects_of_like_objects_share_one_header() -> None:
    trips: JsonValue = [[{"flight": "A", "price": 1}, {"flight": "B", "price": 2}], [{"flight": "C", "price": 3}]]
    assert json_to_markdown(trips) == "#|flight|price\n-|-|-\n1|A|1\n1|B|2\n2|C|3"
    cards: JsonValue = {f"card_{number}": {"brand": "visa", "last_four": "7447", "holder": "Mia"} for number in range(4)}
    assert json_to_markdown(cards).startswith('||brand|last_four|holder|\n|-|-|-|-|\n|card_0|visa|"7447"|Mia|\n')
    for value in (trips, cards):
        assert markdown_to_json(json_to_markdown(value)) == value


@pytest.mark.parametrize("literal", ["1.10", "1e400", "-0", "-0.0", "1E5", "0.1e-7", "9" * 5_000, "123456789012345678901234567890", "1.0"])
def test_numbers_stand_as_written(literal: str) -> None:
    for document in (literal, f'{{"n": {literal}}}', f"[{literal}, {literal}]", f'[{{"n": {literal}, "m": 1}}, {{"n": 2, "m": 3}}]'):
        text = json_to_markdown(decode(document))
        assert literal in text
        assert encode(markdown_to_json(text)) == document.replace(": ", ":").replace(", ", ",")


def test_not_a_number_and_infinity_stand_as_words() -> None:
    value = decode('{"a": NaN, "b": Infinity, "c": -Infinity}')
    text = json_to_markdown(value)
    assert text == "- a: NaN\n- b: Infinity\n- c: -Infinity"
    back = markdown_to_json(text)
    assert isinstance(back, dict)
    assert math.isnan(float(str(back["a"])))


def test_a_number_as_written_is_a_float() -> None:
    assert NumberAsWritten("1.10") == 1.1
    assert NumberAsWritten("1.10").text == "1.10"


def test_deeper_than_lists_can_say_is_fenced_json() -> None:
    value: JsonValue = 1
    for _ in range(MAX_DEPTH):
        value = [value, 2]
    assert not json_to_markdown(value).startswith("```")
    check_content(json_to_markdown(value))
    for _ in range(700):
        value = [value]
    text = json_to_markdown(value)
    assert text.startswith("```json\n[[[[")
    check_content(text)
    assert encode(markdown_to_json(text)) == encode(value)


@pytest.mark.parametrize(
    "text", ["- a: 1\n- b", "- a: 1\n- a: 2", "|a|\n|-|\n|1|2|", "two\nlines", "- a:", "- a:\n  - b: 1\n junk", "```json\n{\n```", "|"]
)
def test_other_markdown_is_refused(text: str) -> None:
    with pytest.raises(errors.InvalidInput):
        markdown_to_json(text)


@given(st.text(alphabet='- |:ab"\\\n[];{}1#', max_size=40))
def test_reading_any_text_fails_in_no_other_way(text: str) -> None:
    try:
        markdown_to_json(text)
    except errors.InvalidInput:
        return


# --- what tools return --------------------------------------------------------------------------------------------------------------


def test_what_a_tool_returned_becomes_markdown() -> None:
    assert tool_text(' {"a": 1, "b": [1, 2]} ') == ("- a: 1\n- b: [1; 2]", ["JSON became markdown"])
    assert tool_text("255.0") == ("255.0", [])
    assert tool_text("Transfer successful") == ("Transfer successful", [])
    assert tool_text("") == ("(empty)", ["an empty text was marked as such"])
    assert tool_text('"{\\"a\\": 1}"') == ("- a: 1", ["a JSON string became its text", "JSON became markdown"])
    assert tool_text('"two\\nlines"') == ("two\nlines", ["a JSON string became its text"])
    assert tool_text('{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n')[0] == "a|b\n-|-\n1|x\n2|y"


def test_two_equal_keys_are_kept_as_code() -> None:
    text, notes = tool_text('{"a": 1, "a": 2}')
    assert text == '```\n{"a": 1, "a": 2}\n```'
    assert notes == ["HTML or JSON was put into a code block"]


def test_json_too_deep_to_read_is_kept_as_code() -> None:
    text, _ = tool_text("[" * 5_000 + "]" * 5_000)
    assert text.startswith("```\n[[[")


def test_binary_inside_json_is_described() -> None:
    text, notes = tool_text(json.dumps({"name": "a.png", "data": BASE64}))
    assert re.fullmatch(r"- name: a\.png\n- data: \(encoded data, 1200 characters, sha256 [0-9a-f]{64}\)", text)
    assert len(notes) == 2


# --- neutral text -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("  \n", "(empty)"),
        ("a\x00b\x07c\x7f\x85d", "a\u2400b\u2407c\u2421\nd"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("half \ud83d", "half \ufffd"),
        ("before\n\n<div>x</div>\n\nafter", "before\n\n```\n<div>x</div>\n```\n\nafter"),
        ('{"a": 1}', "- a: 1"),
        ('so:\n\n{"a": 1}\n\nend', 'so:\n\n```\n{"a": 1}\n```\n\nend'),
        ("<b>\n```\nx\n```", "```\n<b>\n```\n```\nx\n```"),
        ("- a\n- <br>\n\nb", "```\n- a\n- <br>\n```\n\nb"),
        ('{"a": 1,\n\n"b": }\n\n"c": 2}', '{"a": 1,\n\n"b": }\n\n"c": 2}'),
    ],
)
def test_text_is_changed_as_little_as_needed(text: str, expected: str) -> None:
    said, notes = neutral_text(text)
    assert said == expected
    assert bool(notes) == (said != text)
    check_content(said)


def test_a_fence_is_longer_than_any_inside() -> None:
    text, _ = neutral_text("```` <b>\n\n<div>\n`````\n<p>\n```")
    check_content(text)


def test_a_long_text_is_cut_and_says_so() -> None:
    text, notes = neutral_text("word " * 100_000)
    assert len(text.encode()) <= 262_144
    assert text.endswith("of 500000 bytes were left out here.)")
    assert notes == ["a text over the limit was cut"]
    text, notes = neutral_text("<b>x</b> é\n" * 60_000)
    check_content(text)
    assert len(text) > 100_000
    assert notes == ["a text over the limit was cut", "HTML or JSON was put into a code block"]


@pytest.mark.parametrize("text", ["`" * 250_000 + "\n<b>\n" + "~" * 250_000, ">" * 300 + "<b>", "[" * 300_000, "- <b>\n" * 30_000])
def test_hostile_texts_still_become_neutral(text: str) -> None:
    said, notes = neutral_text(text)
    check_content(said)
    assert notes


@settings(max_examples=300)
@given(st.text(max_size=200) | st.text(alphabet='<b>/`~{}[]":,1 \n\r-|>\x00\x1b\ud800', max_size=120))
def test_any_text_becomes_neutral(text: str) -> None:
    for convert in (neutral_text, tool_text):
        said, _ = convert(text)
        check_content(said)
        assert convert(said)[0] == said or convert is tool_text
