"""Tools for Google's generateContent: function declarations, with JSON Schema or in Google's own form of OpenAPI schemas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from adapters.tool_definitions.gemini_schema import from_openapi, to_openapi
from adapters.tool_definitions.neutral import Names, NeutralTools, Notes, ToolDefinition, VendorTools
from adapters.tool_definitions.shared import definition, described, object_at_the_top, pieces, read_object, unknown_fields
from adapters.tool_definitions.walking import check, schemas

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
"""A letter or underscore, then letters, digits, underscores, dots, colons and dashes; 64 in all (the SDK's description of the field)."""

HEEDED: Final = frozenset({
    "$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems", "minimum",
    "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required", "propertyOrdering",
})  # fmt: skip
"""Keywords of JSON Schema that the vendor lists as supported (the SDK's description of the field)."""

_QUIET: Final = frozenset({"$schema", "$comment", "definitions", "default", "examples"})
"""Keywords that ask for nothing."""

_KNOWN: Final = frozenset({"name", "description", "parameters", "parametersJsonSchema", "parameters_json_schema"})


def to_declarations(tools: Sequence[ToolDefinition], *, openapi: bool = False) -> VendorTools:
    """For the ``functionDeclarations`` of one tool: with ``parameters_json_schema``, or with ``parameters`` for endpoints that know only these.

    Raises:
        InvalidField, TooLarge: a schema is none, or too large.
    """
    notes = Notes()
    names = Names((tool.name for tool in tools), NAME, 64)
    made: list[dict[str, Any]] = []
    for number, tool in enumerate(pieces(tools)):
        assert isinstance(tool, ToolDefinition)
        place = f"/{number}"
        fields: dict[str, Any] = {"name": names.of(tool.name, f"{place}/name", notes)}
        described(tool.description, fields, place, notes)
        parameters = object_at_the_top(tool.parameters, f"{place}/parameters", notes, unions=False)
        if openapi:
            fields["parameters"] = to_openapi(parameters, f"{place}/parameters", notes)
        else:
            fields["parameters_json_schema"] = parameters
            for at in schemas(parameters, f"{place}/parameters"):
                for keyword in sorted((at.fields or {}).keys() - HEEDED - _QUIET):
                    notes.add("keyword_ignored", f"{at.place}/{keyword[:100]}", keyword)
        if tool.strict:
            notes.add("strict_unknown", f"{place}/strict")
        made.append(fields)
    return VendorTools(made, notes.list, names.back)


def from_declarations(tools: Sequence[object]) -> NeutralTools:
    """From function declarations, with either field of parameters in either spelling. Raises InvalidField, TooLarge."""
    notes = Notes()
    found: list[ToolDefinition] = []
    for number, given in enumerate(pieces(tools)):
        place = f"/{number}"
        tool = read_object(given, place)
        unknown_fields(tool, _KNOWN, place, notes)
        parameters = tool.get("parametersJsonSchema", tool.get("parameters_json_schema"))
        if parameters is None and tool.get("parameters") is not None:
            parameters = from_openapi(check(tool["parameters"], f"{place}/parameters"), f"{place}/parameters", notes)
        found.append(definition(tool.get("name"), tool.get("description"), parameters, place, strict=False))
    return NeutralTools(found, notes.list)
