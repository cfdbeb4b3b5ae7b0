"""Tools to each vendor's form and back: valid by its own types, nothing lost in silence, bounded work on hostile schemas."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import pytest
from anthropic.types import ToolParam
from google.genai import types as google
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from adapters import tool_definitions as tools
from adapters.tool_definitions import CODES, NeutralTools, ToolDefinition, VendorTools
from adapters.tool_definitions.neutral import MOST_NOTES
from graph.model.errors import InvalidField, TooLarge

To = Callable[[Sequence[ToolDefinition]], VendorTools]
From = Callable[[Sequence[object]], NeutralTools]


def to_openapi(given: Sequence[ToolDefinition]) -> VendorTools:
    return tools.to_declarations(given, openapi=True)


WAYS: dict[str, tuple[To, From]] = {
    "chat": (tools.to_chat, tools.from_chat),
    "responses": (tools.to_responses, tools.from_responses),
    "messages": (tools.to_messages, tools.from_messages),
    "deepseek": (tools.to_deepseek, tools.from_chat),
    "gemini": (tools.to_declarations, tools.from_declarations),
    "gemini openapi": (to_openapi, tools.from_declarations),
}

CHAT = TypeAdapter[Any](ChatCompletionFunctionToolParam)
RESPONSES = TypeAdapter[Any](FunctionToolParam)
MESSAGES = TypeAdapter[Any](ToolParam)


def check_by_the_vendor(way: str, made: Sequence[dict[str, Any]]) -> None:
    """Raises when the vendor's own type refuses a tool or does not know one of its fields."""
    for tool in made:
        if way in {"chat", "deepseek"}:
            assert CHAT.validate_python(tool) == tool
        elif way == "responses":
            assert RESPONSES.validate_python(tool) == tool
        elif way == "messages":
            assert MESSAGES.validate_python(tool) == tool
        else:
            google.FunctionDeclaration.model_validate(tool)


def weather(**changes: Any) -> ToolDefinition:
    parameters = {
        "type": "object",
        "properties": {"town": {"type": "string", "description": "Where"}, "days": {"type": "integer", "minimum": 1}},
        "required": ["town"],
    }
    told = {"name": "read_weather", "description": "The weather of a town", "parameters": parameters}
    return ToolDefinition.model_construct(None, **(told | {"strict": False} | changes))


def codes(made: VendorTools | NeutralTools) -> set[str]:
    found = {note.code for note in made.notes}
    assert found <= CODES.keys()
    return found


@pytest.mark.parametrize("way", WAYS)
def test_a_plain_tool_is_said_whole_to_each_vendor(way: str) -> None:
    there, back = WAYS[way]
    given = [weather(), ToolDefinition(name="ping")]
    made = there(given)
    check_by_the_vendor(way, made.tools)
    assert made.notes == []
    assert made.names == {}
    again = back(made.tools)
    assert again.tools == given
    assert again.notes == []


def test_each_vendor_has_its_own_form() -> None:
    (chat,) = tools.to_chat([weather()]).tools
    (responses,) = tools.to_responses([weather()]).tools
    (messages,) = tools.to_messages([weather()]).tools
    (gemini,) = tools.to_declarations([weather()]).tools
    (openapi,) = to_openapi([weather()]).tools
    assert chat["function"]["name"] == responses["name"] == messages["name"] == gemini["name"] == "read_weather"
    assert "strict" not in chat["function"]
    assert responses["strict"] is False
    assert messages["input_schema"] == gemini["parameters_json_schema"] == weather().parameters
    assert openapi["parameters"]["type"] == "OBJECT"
    assert openapi["parameters"]["properties"]["days"] == {"type": "INTEGER", "minimum": 1}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "name", ["", "read weather", "wetter/lesen", "über", "a" * 65, "<|im_start|>", "\ud800", "x\x00y", "1.2", "a" * 1_000_000]
)
def test_a_name_that_is_refused_gets_another_that_leads_back(way: str, name: str) -> None:
    made = WAYS[way][0]([weather(name=name), weather()])
    shown = [tool.get("function", tool)["name"] for tool in made.tools]
    assert shown[1] == "read_weather"
    if shown[0] != name:
        assert codes(made) == {"name_changed"}
        assert made.names == {shown[0]: name}
    assert 1 <= len(shown[0]) <= 64
    assert shown[0].isascii()
    check_by_the_vendor(way, made.tools)


def test_two_names_never_become_one() -> None:
    given = [weather(name=name) for name in ("a b", "a/b", "a_b", "a b")]
    made = tools.to_chat(given)
    shown = [tool["function"]["name"] for tool in made.tools]
    assert len(set(shown)) == 4
    assert [made.names.get(name, name) for name in shown] == ["a b", "a/b", "a_b", "a b"]
    taken = shown[0]
    again = [tool["function"]["name"] for tool in tools.to_chat([weather(name="a b"), weather(name=taken)]).tools]
    assert again[1] == taken
    assert again[0] != taken


def test_strict_is_brought_about_where_it_can_be() -> None:
    nested = {
        "type": "object",
        "properties": {"at": {"type": "object", "properties": {"x": {"enum": ["a"], "type": "string"}}}, "c": {"const": 1}},
    }
    made = tools.to_chat([weather(parameters=nested, strict=True)])
    assert codes(made) == {"strict_closed", "strict_nullable"}
    function = made.tools[0]["function"]
    assert function["strict"] is True
    assert function["parameters"] == {
        "type": "object",
        "additionalProperties": False,
        "required": ["at", "c"],
        "properties": {
            "at": {
                "type": ["object", "null"],
                "additionalProperties": False,
                "required": ["x"],
                "properties": {"x": {"enum": ["a", None], "type": ["string", "null"]}},
            },
            "c": {"anyOf": [{"const": 1}, {"type": "null"}]},
        },
    }
    assert "strict_beta" in codes(tools.to_deepseek([weather(parameters=nested, strict=True)]))
    closed = tools.to_messages([weather(strict=True, parameters={"type": "object", "properties": {"a": {"type": "string"}}})])
    assert codes(closed) == {"strict_closed"}
    assert "required" not in closed.tools[0]["input_schema"]
    assert codes(tools.to_declarations([weather(strict=True)])) == {"strict_unknown"}


@pytest.mark.parametrize(
    ("way", "schema", "keyword"),
    [
        ("chat", {"allOf": [{"type": "string"}]}, "allOf"),
        ("chat", {"type": "object"}, "additionalProperties"),
        ("chat", {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}, "additionalProperties"),
        ("responses", {"type": "string", "default": "a"}, "default"),
        ("responses", True, "a schema that is true or false"),
        ("messages", {"type": "string", "maxLength": 3}, "maxLength"),
        ("messages", {"$ref": "#"}, "$ref to itself"),
        ("deepseek", {"type": "array", "items": {"type": "string"}, "minItems": 2}, "minItems"),
    ],
)
def test_what_strict_mode_refuses_turns_it_off_and_leaves_the_schema_whole(way: str, schema: object, keyword: str) -> None:
    given = weather(
        strict=True, parameters={"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    )
    made = WAYS[way][0]([given])
    assert {(note.code, note.keyword) for note in made.notes} == {("strict_off", keyword)}
    again = WAYS[way][1](made.tools).tools[0]
    assert again == given.model_copy(update={"strict": False})


def test_an_optional_part_that_refers_to_itself_is_strict_with_openai() -> None:
    tree = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "required": ["root"],
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    made = tools.to_chat([weather(parameters=tree, strict=True)])
    assert made.tools[0]["function"]["strict"] is True
    assert made.tools[0]["function"]["parameters"]["$defs"]["Node"]["properties"]["next"] == {
        "anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]
    }
    assert codes(tools.to_messages([weather(parameters=tree, strict=True)])) == {"strict_off"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object", "properties": {"b": {"$ref": "#"}}}]},
        {"type": "array", "items": {"type": "string"}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {}}}},
        {"enum": ["a"]},
    ],
)
def test_a_top_that_is_no_plain_object_is_wrapped(way: str, schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    made = WAYS[way][0]([weather(parameters=schema)])
    assert "root_wrapped" in codes(made)
    assert schema == before
    check_by_the_vendor(way, made.tools)
    top = WAYS[way][1](made.tools).tools[0].parameters
    assert top["type"] == "object"
    assert list(top["properties"]) == ["value"]
    if "openapi" not in way and "anyOf" in schema:
        assert top["properties"]["value"]["anyOf"][1]["properties"]["b"] == {"$ref": "#/properties/value"}


def test_a_schema_without_a_type_is_told_that_it_is_an_object() -> None:
    made = tools.to_messages([weather(parameters={"properties": {"a": {}}}), weather(name="b", parameters={})])
    assert codes(made) == {"root_typed"}
    assert [tool["input_schema"]["type"] for tool in made.tools] == ["object", "object"]


@pytest.mark.parametrize(
    ("schema", "said", "wanted"),
    [
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}, {"null_as_nullable", "type_list_split"}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"anyOf": [{"type": "INTEGER"}], "nullable": True}, {"null_as_nullable"}),
        ({"type": ["string", "number"]}, {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}]}, {"type_list_split"}),
        ({"oneOf": [{"type": "string"}]}, {"anyOf": [{"type": "STRING"}]}, {"one_of_as_any_of"}),
        ({"const": "a"}, {"type": "STRING", "enum": ["a"]}, {"const_as_enum"}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER", "description": '(JSON Schema: {"enum": [1, 2]})'}, {"enum_as_text"}),
        (
            {"type": "string", "format": "email"},
            {"type": "STRING", "description": '(JSON Schema: {"format": "email"})'},
            {"keyword_dropped"},
        ),
        ({"type": "object", "additionalProperties": False}, {"type": "OBJECT"}, {"keyword_dropped"}),
        ({"not": {"type": "null"}}, {"description": '(JSON Schema: {"not": {"type": "null"}})'}, {"keyword_dropped"}),
        ({"$ref": "#/$defs/A", "description": "own"}, {"type": "STRING", "description": "own"}, {"reference_inlined"}),
        ({"allOf": [{"$ref": "#/$defs/A"}]}, {"type": "STRING"}, {"all_of_merged", "reference_inlined"}),
        ({"$ref": "https://example.test/schema"}, {}, {"reference_cut"}),
        ({"$ref": "#/nowhere"}, {}, {"reference_cut"}),
        (True, {}, {"boolean_schema"}),
    ],
)
def test_what_googles_own_schemas_have_no_word_for_is_adapted_and_noted(schema: object, said: object, wanted: set[str]) -> None:
    made = to_openapi([weather(parameters={"type": "object", "properties": {"a": schema}, "$defs": {"A": {"type": "string"}}})])
    check_by_the_vendor("gemini", made.tools)
    assert made.tools[0]["parameters"]["properties"]["a"] == said
    assert codes(made) == wanted
    assert all(note.place.startswith("/0/parameters/properties/a") for note in made.notes)


def test_a_schema_that_refers_to_itself_is_cut() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    made = to_openapi([weather(parameters=tree)])
    assert codes(made) == {"reference_inlined", "reference_cut"}
    assert made.tools[0]["parameters"]["properties"]["next"] == {"type": "OBJECT", "properties": {"next": {}}}


def test_keywords_that_gemini_does_not_heed_are_sent_and_noted() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a"}}}
    made = tools.to_declarations([weather(parameters=schema)])
    assert made.tools[0]["parameters_json_schema"] == schema
    assert [(note.code, note.place, note.keyword) for note in made.notes] == [
        ("keyword_ignored", "/0/parameters/properties/a/pattern", "pattern")
    ]


def test_what_a_vendor_has_and_we_do_not_is_noted() -> None:
    read = tools.from_messages(
        [
            {"name": "a", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}, "description": None},
            {"name": "web_search", "type": "web_search_20250305"},
        ]
    )
    assert [tool.name for tool in read.tools] == ["a"]
    assert [(note.code, note.place) for note in read.notes] == [("field_unknown", "/0/cache_control"), ("tool_of_the_vendor", "/1")]
    assert codes(tools.from_chat([{"type": "custom", "custom": {"name": "x"}}])) == {"tool_of_the_vendor"}
    assert tools.from_responses([{"type": "function", "name": "a", "parameters": None, "strict": None}]).tools == [
        ToolDefinition(name="a", strict=True)
    ]
    ordered = {
        "name": "a",
        "parameters": {"type": "OBJECT", "propertyOrdering": ["x"], "properties": {"x": {"type": "STRING", "minLength": "2"}}},
    }
    gemini = tools.from_declarations([ordered])
    assert codes(gemini) == {"field_unknown"}
    assert gemini.tools[0].parameters == {"type": "object", "properties": {"x": {"type": "string", "minLength": 2}}}


def test_too_much_for_a_vendor_is_noted() -> None:
    assert "too_many_tools" in codes(tools.to_chat([weather(name=f"t{number}") for number in range(129)]))
    assert codes(tools.to_chat([weather(description="x" * 1_025)])) == {"description_long"}


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def multiplying() -> dict[str, Any]:
    """Each definition holds the next one ten times: ten to the power of twenty when written out."""
    definitions: dict[str, Any] = {f"D{n}": {"properties": {f"p{k}": {"$ref": f"#/$defs/D{n + 1}"} for k in range(10)}} for n in range(20)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/D0"}}, "$defs": definitions}


HOSTILE: dict[str, dict[str, Any]] = {
    "deep": deep(400),
    "wide": {"type": "object", "properties": {f"p{n}": {"type": "string", "pattern": "a"} for n in range(25_000)}},
    "multiplying": multiplying(),
    "round": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
    },
    "long names": {"type": "object", "properties": {"n" * 1_000_000: {"type": "string", "format": "\ud800"}}},
    "long reference": {"type": "object", "properties": {"a": {"$ref": "#" + "/a" * 500_000}}},
    "nonsense": {
        "type": 5,
        "properties": {"a": {"type": {"x": 1}, "enum": 7, "anyOf": "x", "items": [1, None], "format": {"a": 1}}},
        "required": "all",
    },
    "many notes": {"type": "object", "properties": {f"p{n}": {"type": "string", "pattern": "a"} for n in range(2_000)}},
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_cost_bounded_work(way: str, name: str, *, strict: bool) -> None:
    began = time.process_time()
    made = None
    with suppress(TooLarge, InvalidField):
        made = WAYS[way][0]([weather(parameters=HOSTILE[name], strict=strict)])
        WAYS[way][1](made.tools)
    if made is not None:
        assert len(made.notes) <= MOST_NOTES + 1
        assert all(len(note.place) < 300 and note.place.isprintable() for note in made.notes)
    if name == "deep":
        assert made is None
    assert time.process_time() - began < 10


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "given",
    [
        [None],
        [{}],
        ["x"],
        [{"name": 5}],
        [{"name": "a", "type": {}, "input_schema": {}}],
        [{"type": "function", "function": 5}],
        [{"name": "a", "parameters": "x"}],
    ],
)
def test_nonsense_is_refused_or_noted_and_never_crashes(way: str, given: list[object]) -> None:
    read = None
    with suppress(InvalidField):
        read = WAYS[way][1](given)
    if read is not None:
        assert codes(read) <= {"tool_of_the_vendor", "field_unknown"}
        assert read.notes


def test_a_refusal_says_where_and_repeats_nothing() -> None:
    with pytest.raises(InvalidField) as refused:
        tools.from_messages([{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": "secret"}])
    assert refused.value.where is not None
    assert refused.value.where.field == "/1/parameters"
    assert "secret" not in refused.value.message + refused.value.hint


NAMES = st.one_of(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), st.text(max_size=8))
SCALAR = st.sampled_from(["string", "integer", "number", "boolean", "null"])


# hypothesis' own types of this one lose the keys.
made_of = cast("Callable[..., st.SearchStrategy[dict[str, Any]]]", st.fixed_dictionaries)


def extended(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        made_of({"type": st.just("array"), "items": inner}),
        made_of(
            {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
            optional={"additionalProperties": st.one_of(st.booleans(), inner), "description": st.text(max_size=9)},
        ),
        made_of({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        made_of({"oneOf": st.lists(inner, min_size=1, max_size=2)}),
        made_of({"allOf": st.lists(inner, min_size=1, max_size=2)}),
    )


SCHEMA: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        made_of(
            {"type": st.one_of(SCALAR, st.lists(SCALAR, min_size=1, max_size=3, unique=True))},
            optional={
                "description": st.text(max_size=9),
                "enum": st.lists(st.one_of(st.text(max_size=3), st.integers(-5, 5), st.none()), min_size=1, max_size=3),
                "format": st.sampled_from(["date-time", "email", "int32"]),
                "default": st.integers(0, 3),
                "maxLength": st.integers(0, 9),
                "pattern": st.just("^a"),
            },
        ),
        st.just({"$ref": "#/$defs/Other"}),
        made_of({"const": st.one_of(st.text(max_size=3), st.integers(0, 3))}),
        st.booleans(),
    ),
    extended,
    max_leaves=6,
)
TOOL = st.builds(
    ToolDefinition,
    name=NAMES,
    description=st.text(max_size=20),
    parameters=made_of(
        {
            "type": st.just("object"),
            "properties": st.dictionaries(NAMES, SCHEMA, max_size=3),
            "$defs": st.just({"Other": {"type": "object", "properties": {"a": {"$ref": "#/$defs/Other"}, "b": {"type": "string"}}}}),
        }
    ),
    strict=st.booleans(),
)


@pytest.mark.parametrize("way", WAYS)
@given(given_tools=st.lists(TOOL, min_size=1, max_size=3))
@settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors])
def test_there_and_back_loses_nothing_that_no_note_tells(way: str, given_tools: list[ToolDefinition]) -> None:
    before = copy.deepcopy(given_tools)
    made = WAYS[way][0](given_tools)
    assert given_tools == before
    codes(made)
    check_by_the_vendor(way, made.tools)
    again = WAYS[way][1](made.tools)
    assert len(again.tools) == len(given_tools)
    for number, (tool, back) in enumerate(zip(given_tools, again.tools, strict=True)):
        places = [note.place for note in (*made.notes, *again.notes)]
        assert made.names.get(back.name, back.name) == tool.name
        for field in ("description", "strict"):
            if getattr(back, field) != getattr(tool, field):
                assert any(place.startswith((f"/{number}/{field}", f"/{number}/parameters")) for place in places)
        for place in differences(tool.parameters, back.parameters, f"/{number}/parameters"):
            # What a keyword asked for may stand in the description, the type or the enumeration beside it.
            above, _, keyword = place.rpartition("/")
            around = f"{above}/" if keyword in {"description", "type", "enum", "anyOf", "required"} else place
            assert any(place.startswith(told) or told.startswith(around) for told in places), place


def differences(one: object, other: object, place: str) -> list[str]:
    """Where two JSON values differ, as deep as can be said."""
    if isinstance(one, dict) and isinstance(other, dict):
        a, b = cast("dict[str, object]", one), cast("dict[str, object]", other)
        found: list[str] = []
        for key in a.keys() | b.keys():
            # Only references need $defs; each place that referred to them is noted.
            if key != "$defs" or key in b:
                found += differences(a.get(key), b.get(key), f"{place}/{shown(key)}")
        return found
    return [] if one == other else [place]


def shown(key: str) -> str:
    escaped = key.replace("~", "~0").replace("/", "~1")
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in escaped)
