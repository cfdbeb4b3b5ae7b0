"""Tools for Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from adapters.tool_definitions.neutral import Names, NeutralTools, Notes, ToolDefinition, VendorTools
from adapters.tool_definitions.shared import (
    OPENAI_NAME,
    definition,
    described,
    object_at_the_top,
    pieces,
    read_object,
    unknown_fields,
)
from adapters.tool_definitions.strictness import ANTHROPIC, strict_parameters

_KNOWN: Final = frozenset({"type", "name", "description", "input_schema", "strict"})


def to_messages(tools: Sequence[ToolDefinition]) -> VendorTools:
    """For Messages: ``input_schema`` is an object without a union at the top. Raises InvalidField, TooLarge."""
    notes = Notes()
    names = Names((tool.name for tool in tools), OPENAI_NAME, 64)
    made: list[dict[str, Any]] = []
    for number, tool in enumerate(pieces(tools)):
        assert isinstance(tool, ToolDefinition)
        place = f"/{number}"
        fields: dict[str, Any] = {"name": names.of(tool.name, f"{place}/name", notes)}
        described(tool.description, fields, place, notes)
        parameters = object_at_the_top(tool.parameters, f"{place}/parameters", notes, unions=False)
        fields["input_schema"], strict = strict_parameters(tool, parameters, ANTHROPIC, f"{place}/parameters", notes)
        if strict:
            fields["strict"] = True
        made.append(fields)
    return VendorTools(made, notes.list, names.back)


def from_messages(tools: Sequence[object]) -> NeutralTools:
    """From Messages. Tools that the vendor defines are noted and left out. Raises InvalidField, TooLarge."""
    notes = Notes()
    found: list[ToolDefinition] = []
    for number, given in enumerate(pieces(tools)):
        place = f"/{number}"
        tool = read_object(given, place)
        if "input_schema" not in tool or tool.get("type") not in (None, "custom"):
            notes.add("tool_of_the_vendor", place)
            continue
        unknown_fields(tool, _KNOWN, place, notes)
        found.append(
            definition(tool.get("name"), tool.get("description"), tool.get("input_schema"), place, strict=tool.get("strict") is True)
        )
    return NeutralTools(found, notes.list)
