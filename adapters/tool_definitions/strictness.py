"""Strict mode: what a schema must be for a vendor to promise that arguments fit it, and how far a schema can be brought there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, cast

from adapters.tool_definitions.neutral import Notes, ToolDefinition
from adapters.tool_definitions.walking import At, Schema, copied, refers_to_itself, schemas

_LOGIC: Final = frozenset({
    "oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "patternProperties", "propertyNames",
    "unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains", "uniqueItems", "minProperties", "maxProperties", "prefixItems",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class StrictMode:
    """A vendor's strict mode. Sources: the vendors' guides to structured outputs, as told by others; limits of OpenAI's 2025 guide."""

    refused: frozenset[str]
    """Keywords it refuses."""
    all_required: bool
    recursion: bool
    most_properties: int = 5_000
    most_depth: int = 10


OPENAI: Final = StrictMode(refused=_LOGIC | {"default"}, all_required=True, recursion=True)
ANTHROPIC: Final = StrictMode(
    refused=_LOGIC | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems"},
    all_required=False,
    recursion=False,
)
DEEPSEEK: Final = StrictMode(refused=_LOGIC | {"minLength", "maxLength", "minItems", "maxItems"}, all_required=True, recursion=True)


def strict_parameters(tool: ToolDefinition, parameters: Schema, mode: StrictMode, place: str, notes: Notes) -> tuple[Schema, bool]:
    """The schema brought to strict mode and true; the schema as it is and false, with a note for each reason, where that cannot be."""
    if not tool.strict:
        return parameters, False
    reasons = _reasons(parameters, mode, place)
    if reasons:
        for where, keyword in reasons:
            notes.add("strict_off", where, keyword)
        return parameters, False

    def change(at: At, schema: Schema) -> tuple[object, tuple[str, ...]]:
        if _is_object(schema):
            if schema.get("additionalProperties") is not False:
                schema["additionalProperties"] = False
                notes.add("strict_closed", at.place)
            if mode.all_required:
                _require_all(schema, at.place, notes)
        return schema, ()

    return cast("Schema", copied(parameters, place, change)), True


def _reasons(parameters: Schema, mode: StrictMode, place: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    properties = depth = 0
    for at in schemas(parameters, place):
        schema = at.fields
        if schema is None:
            found.append((at.place, "a schema that is true or false"))
            continue
        found += [(f"{at.place}/{keyword}", keyword) for keyword in sorted(mode.refused & schema.keys())]
        if _is_object(schema):
            held = schema.get("properties")
            properties += len(cast("Schema", held)) if isinstance(held, dict) else 0
            if schema.get("additionalProperties", False) is not False or ("properties" not in schema and at.place != place):
                found.append((at.place, "additionalProperties"))
        depth = max(depth, at.depth)
    if properties > mode.most_properties or depth > mode.most_depth:
        found.append((place, "too many properties or levels"))
    if not mode.recursion and refers_to_itself(parameters):
        found.append((place, "$ref to itself"))
    return found


def _is_object(schema: Schema) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema


def _require_all(schema: Schema, place: str, notes: Notes) -> None:
    held = schema.get("properties")
    if not isinstance(held, dict):
        return
    given = schema.get("required")
    required = cast("list[object]", given) if isinstance(given, list) else []
    properties = dict(cast("Schema", held))
    for name, inner in properties.items():
        if name not in required:
            properties[name] = _or_null(inner)
            notes.add("strict_nullable", f"{place}/properties/{name}")
    schema["properties"] = properties
    if list(required) != list(properties):
        schema["required"] = [*required, *(name for name in properties if name not in required)]


def _or_null(given: Any) -> object:
    if not isinstance(given, dict):
        return given
    schema = dict(cast("Schema", given))
    kind = schema.get("type")
    if isinstance(kind, str) and "const" not in schema:
        kind = [kind]
    if isinstance(kind, list) and "const" not in schema:
        kinds = cast("list[object]", kind)
        schema["type"] = kinds if "null" in kinds else [*kinds, "null"]
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        return schema
    return {"anyOf": [schema, {"type": "null"}]}
