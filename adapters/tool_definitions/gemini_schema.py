"""JSON Schema to the subset of OpenAPI that Google's ``Schema`` is, and back."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from adapters.tool_definitions.neutral import Notes
from adapters.tool_definitions.walking import At, Schema, copied, resolved

_KEPT: Final = frozenset({
    "title", "description", "format", "default", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties",
    "maxProperties", "required", "properties", "items", "anyOf", "enum", "type", "nullable",
})  # fmt: skip
_DROPPED_QUIETLY: Final = frozenset({"$schema", "$id", "$comment", "$anchor", "$defs", "definitions"})
"""They ask for nothing, or only references need them, and those are put in place."""

_COUNTS: Final = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_SNAKE: Final = {
    "any_of": "anyOf", "min_items": "minItems", "max_items": "maxItems", "min_length": "minLength", "max_length": "maxLength",
    "min_properties": "minProperties", "max_properties": "maxProperties",
}  # fmt: skip
_MOST_DIGITS: Final = 20

_FORMATS: Final = {"string": {"enum", "date-time"}, "number": {"float", "double"}, "integer": {"int32", "int64"}}
"""Formats that Google's Schema knows by type."""

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object"})

_MOST_INLINED: Final = 2_000
"""References put in place in one schema; they can multiply without end."""
_MOST_SAID: Final = 300
"""Characters of a description that tell what could not be said otherwise."""


def to_openapi(parameters: Schema, place: str, notes: Notes) -> Schema:
    """The schema in Google's form. References are put in place, and what has no word there is told in the description. Raises TooLarge."""
    inlined = 0

    def change(at: At, schema: Schema) -> tuple[object, tuple[str, ...]]:
        nonlocal inlined
        if at.fields is None:
            notes.add("boolean_schema", at.place)
            return {}, at.trail
        trail = at.trail
        _merge_all_of(schema, at.place, notes)
        while isinstance(schema.get("$ref"), str):
            reference = schema.pop("$ref")
            target = resolved(reference, parameters)
            inlined += 1
            if target is None or reference in trail or inlined > _MOST_INLINED:
                notes.add("reference_cut", at.place, "$ref")
                break
            trail = (*trail, reference)
            notes.add("reference_inlined", at.place, "$ref")
            schema = {**target, **schema}
            _merge_all_of(schema, at.place, notes)
        return _converted(schema, at.place, notes), trail

    return cast("Schema", copied(parameters, place, change))


def from_openapi(parameters: Schema, place: str, notes: Notes) -> Schema:
    """The schema as JSON Schema: types in small letters, ``nullable`` as the type null, ``example`` among ``examples``. Raises TooLarge."""

    def change(at: At, schema: Schema) -> tuple[object, tuple[str, ...]]:
        if at.fields is None:
            return at.schema, ()
        _respell(schema)
        for name in ("propertyOrdering", "property_ordering"):
            if schema.pop(name, None) is not None:
                notes.add("field_unknown", f"{at.place}/{name}", name)
        if schema.pop("nullable", None):
            _allow_null(schema)
        return schema, ()

    return cast("Schema", copied(parameters, place, change))


def _respell(schema: Schema) -> None:
    """Either spelling of Google's to JSON Schema's; its JSON writes 64-bit numbers as texts."""
    for snake, name in _SNAKE.items():
        if snake in schema:
            schema[name] = schema.pop(snake)
    if isinstance(schema.get("type"), str):
        schema["type"] = str(schema["type"]).lower()
        if schema["type"] == "type_unspecified":
            del schema["type"]
    if "example" in schema:
        schema["examples"] = [schema.pop("example")]
    for name in _COUNTS:
        value = schema.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _MOST_DIGITS:
            schema[name] = int(value)


def _allow_null(schema: Schema) -> None:
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = [kind, "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
    elif isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]


def _converted(schema: Schema, place: str, notes: Notes) -> Schema:
    """One schema, without those in it: they come after."""
    unsaid: dict[str, Any] = {}
    _unions(schema, place, notes, unsaid)
    _types(schema, place, notes)
    _values(schema, place, notes, unsaid)
    for keyword in [key for key in schema if key not in _KEPT]:
        value = schema.pop(keyword)
        if keyword in _DROPPED_QUIETLY:
            continue
        notes.add("keyword_dropped", f"{place}/{keyword[:100]}", keyword)
        if not (keyword == "additionalProperties" and value is False):
            unsaid[keyword] = value
    if not isinstance(schema.get("items", {}), dict):
        unsaid["items"] = schema.pop("items")
        notes.add("keyword_dropped", f"{place}/items", "items")
    if unsaid:
        said = json.dumps(unsaid, ensure_ascii=False)
        before = f"{schema['description']} " if isinstance(schema.get("description"), str) and schema["description"] else ""
        schema["description"] = f"{before}(JSON Schema: {said if len(said) <= _MOST_SAID else said[:_MOST_SAID] + '…'})"
    return schema


def _merge_all_of(schema: Schema, place: str, notes: Notes) -> None:
    """A single schema in ``allOf`` that says nothing again is as good as outside of it."""
    given = schema.get("allOf")
    parts = cast("list[object]", given) if isinstance(given, list) else []
    if len(parts) == 1 and isinstance(parts[0], dict):
        part = cast("Schema", parts[0])
        if not part.keys() & schema.keys():
            del schema["allOf"]
            schema.update(part)
            notes.add("all_of_merged", place, "allOf")


def _unions(schema: Schema, place: str, notes: Notes, unsaid: dict[str, Any]) -> None:
    one_of = schema.get("oneOf")
    if isinstance(one_of, list) and "anyOf" not in schema:
        schema["anyOf"] = schema.pop("oneOf")
        notes.add("one_of_as_any_of", f"{place}/oneOf", "oneOf")
    any_of = schema.get("anyOf")
    if isinstance(any_of, list):
        options = cast("list[object]", any_of)
        rest = [option for option in options if option != {"type": "null"}]
        if len(rest) < len(options):
            schema["nullable"] = True
            notes.add("null_as_nullable", f"{place}/anyOf")
        if rest:
            schema["anyOf"] = rest
        else:
            del schema["anyOf"]
    elif any_of is not None:
        unsaid["anyOf"] = schema.pop("anyOf")


def _types(schema: Schema, place: str, notes: Notes) -> None:
    kind = schema.get("type")
    kinds = [str(each) for each in cast("list[object]", kind)] if isinstance(kind, list) else [kind] if isinstance(kind, str) else []
    if "null" in kinds:
        schema["nullable"] = True
        notes.add("null_as_nullable", f"{place}/type")
    known = [each for each in kinds if each in _TYPES]
    if len(known) < len([each for each in kinds if each != "null"]):
        notes.add("keyword_dropped", f"{place}/type", "type")
    if kind is not None and not kinds:
        notes.add("keyword_dropped", f"{place}/type", "type")
    schema.pop("type", None)
    if isinstance(kind, list):
        notes.add("type_list_split", f"{place}/type")
    if len(known) == 1:
        schema["type"] = known[0].upper()
    elif known and "anyOf" not in schema:
        schema["anyOf"] = [{"type": each} for each in known]


def _values(schema: Schema, place: str, notes: Notes, unsaid: dict[str, Any]) -> None:
    """Constants, enumerations and formats."""
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
        notes.add("const_as_enum", f"{place}/const", "const")
    if "enum" in schema:
        values = schema["enum"]
        texts = [value for value in cast("list[object]", values) if value is not None] if isinstance(values, list) else [None]
        if all(isinstance(value, str) and value for value in texts) and schema.get("type", "STRING") == "STRING":
            if isinstance(values, list) and len(texts) < len(cast("list[object]", values)):
                schema["nullable"] = True
                notes.add("null_as_nullable", f"{place}/enum")
            schema["enum"] = texts
            schema.setdefault("type", "STRING")
        else:
            unsaid["enum"] = schema.pop("enum")
            notes.add("enum_as_text", f"{place}/enum", "enum")
    form = schema.get("format")
    if form is not None and not (isinstance(form, str) and form in _FORMATS.get(str(schema.get("type", "")).lower(), set())):
        unsaid["format"] = schema.pop("format")
        notes.add("keyword_dropped", f"{place}/format", "format")
