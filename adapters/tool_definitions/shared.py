"""What the translations of several vendors share: the schema's top, names, and reading definitions that anybody may have written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from adapters.tool_definitions.neutral import Notes, ToolDefinition
from adapters.tool_definitions.walking import At, Schema, check, copied
from graph.model import errors

OPENAI_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""OpenAI's, Anthropic's and DeepSeek's rule, from their refusals."""

MOST_TOOLS: Final = 10_000
"""Definitions in one translation; OpenAI takes 128."""


def pieces(tools: Sequence[object]) -> Sequence[object]:
    """The definitions, if they are not too many. Raises TooLarge."""
    if len(tools) > MOST_TOOLS:
        raise errors.TooLarge(f"More than {MOST_TOOLS} tools.", hint="Offer a model fewer; OpenAI takes 128.")
    return tools


def object_at_the_top(parameters: Schema, place: str, notes: Notes, *, unions: bool) -> Schema:
    """The parameters as an object schema: told its type, or put under the property ``value``. ``unions`` says whether one may stand at the top."""
    check(parameters, place)
    union = {"anyOf", "oneOf", "allOf"} & parameters.keys()
    kind = parameters.get("type")
    if kind == "object" and (unions or not union):
        return parameters
    if kind is None and not union and not {"$ref", "enum", "const", "items", "not"} & parameters.keys():
        notes.add("root_typed", place)
        return {**parameters, "type": "object"} if "properties" in parameters else {**parameters, "type": "object", "properties": {}}
    notes.add("root_wrapped", place)
    definitions = {key: parameters[key] for key in ("$defs", "definitions") if key in parameters}
    whole = {key: value for key, value in parameters.items() if key not in definitions}

    def moved(at: At, schema: Schema) -> tuple[object, tuple[str, ...]]:
        if at.fields is None:
            return at.schema, ()
        reference = schema.get("$ref")
        if isinstance(reference, str) and (
            reference == "#" or (reference[:2] == "#/" and not reference.startswith(("#/$defs/", "#/definitions/")))
        ):
            schema["$ref"] = f"#/properties/value{reference[1:]}"
        return schema, ()

    return cast("Schema", copied({"type": "object", "properties": {"value": whole}, "required": ["value"], **definitions}, place, moved))


def described(description: str, fields: dict[str, Any], place: str, notes: Notes, most: int | None = None) -> None:
    """Put a description into a definition, unless it is empty; one over ``most`` characters is sent and noted."""
    if description:
        fields["description"] = description
        if most is not None and len(description) > most:
            notes.add("description_long", f"{place}/description")


def read_text(given: object, place: str, *, may_be_missing: bool) -> str:
    """A name or description. Raises InvalidField."""
    if given is None and may_be_missing:
        return ""
    if isinstance(given, str):
        return given
    raise errors.InvalidField("A tool's name or description is no text.").at(field=place)


def read_parameters(given: object, place: str) -> Schema:
    """The parameters; none are those of a function without any. Raises InvalidField, TooLarge."""
    return {"type": "object", "properties": {}} if given is None else check(given, place)


def read_object(given: object, place: str) -> Schema:
    """A definition. Raises InvalidField."""
    if isinstance(given, dict):
        return cast("Schema", given)
    raise errors.InvalidField("A tool's definition is no object.").at(field=place)


def unknown_fields(given: Schema, known: frozenset[str], place: str, notes: Notes) -> None:
    """Note each field that is not known and says something."""
    for name, value in given.items():
        if name not in known and value is not None:
            notes.add("field_unknown", f"{place}/{name[:100]}", name)


def definition(name: object, description: object, parameters: object, place: str, *, strict: bool) -> ToolDefinition:
    """The neutral definition of these parts. Raises InvalidField, TooLarge."""
    return ToolDefinition(
        name=read_text(name, f"{place}/name", may_be_missing=False),
        description=read_text(description, f"{place}/description", may_be_missing=True),
        parameters=read_parameters(parameters, f"{place}/parameters"),
        strict=strict,
    )
