"""Tools for OpenAI's two endpoints, and for DeepSeek, whose form is that of Chat Completions."""

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
from adapters.tool_definitions.strictness import DEEPSEEK, OPENAI, StrictMode, strict_parameters
from adapters.tool_definitions.walking import Schema

MOST_TOOLS: Final = 128
MOST_DESCRIPTION: Final = 1_024
"""Told by others of Chat Completions; what is over it is sent all the same, and noted."""

_FUNCTION: Final = frozenset({"name", "description", "parameters", "strict", "type"})


def to_chat(tools: Sequence[ToolDefinition]) -> VendorTools:
    """For Chat Completions. Raises InvalidField, TooLarge."""
    return _nested(tools, OPENAI)


def to_deepseek(tools: Sequence[ToolDefinition]) -> VendorTools:
    """For DeepSeek's chat endpoint; strict tools are taken at its beta address only. Raises InvalidField, TooLarge."""
    return _nested(tools, DEEPSEEK)


def to_responses(tools: Sequence[ToolDefinition]) -> VendorTools:
    """For Responses, which wants ``strict`` said. Raises InvalidField, TooLarge."""
    notes = Notes()
    names = _names(tools, notes)
    made: list[dict[str, Any]] = []
    for place, tool in enumerate(pieces(tools)):
        assert isinstance(tool, ToolDefinition)
        fields, strict = _fields(tool, names, f"/{place}", notes, OPENAI)
        made.append({"type": "function", **fields, "strict": strict})
    return VendorTools(made, notes.list, names.back)


def from_chat(tools: Sequence[object]) -> NeutralTools:
    """From Chat Completions, or DeepSeek. Tools of other types are noted and left out. Raises InvalidField, TooLarge."""
    notes = Notes()
    found: list[ToolDefinition] = []
    for number, given in enumerate(pieces(tools)):
        place = f"/{number}"
        tool = read_object(given, place)
        if tool.get("type", "function") != "function":
            notes.add("tool_of_the_vendor", place)
            continue
        unknown_fields(tool, frozenset({"type", "function"}), place, notes)
        function = read_object(tool.get("function"), f"{place}/function")
        found.append(_read(function, place, notes, strict=function.get("strict") is True))
    return NeutralTools(found, notes.list)


def from_responses(tools: Sequence[object]) -> NeutralTools:
    """From Responses, where a tool that does not say is strict. Tools of other types are noted and left out. Raises InvalidField, TooLarge."""
    notes = Notes()
    found: list[ToolDefinition] = []
    for number, given in enumerate(pieces(tools)):
        place = f"/{number}"
        tool = read_object(given, place)
        if tool.get("type", "function") != "function":
            notes.add("tool_of_the_vendor", place)
            continue
        found.append(_read(tool, place, notes, strict=tool.get("strict") is not False))
    return NeutralTools(found, notes.list)


def _nested(tools: Sequence[ToolDefinition], mode: StrictMode) -> VendorTools:
    notes = Notes()
    names = _names(tools, notes)
    made: list[dict[str, Any]] = []
    for place, tool in enumerate(pieces(tools)):
        assert isinstance(tool, ToolDefinition)
        fields, strict = _fields(tool, names, f"/{place}", notes, mode)
        if strict:
            fields["strict"] = True
            if mode is DEEPSEEK:
                notes.add("strict_beta", f"/{place}/strict")
        made.append({"type": "function", "function": fields})
    return VendorTools(made, notes.list, names.back)


def _names(tools: Sequence[ToolDefinition], notes: Notes) -> Names:
    if len(tools) > MOST_TOOLS:
        notes.add("too_many_tools", "")
    return Names((tool.name for tool in tools), OPENAI_NAME, 64)


def _fields(tool: ToolDefinition, names: Names, place: str, notes: Notes, mode: StrictMode) -> tuple[dict[str, Any], bool]:
    fields: dict[str, Any] = {"name": names.of(tool.name, f"{place}/name", notes)}
    described(tool.description, fields, place, notes, MOST_DESCRIPTION)
    parameters = object_at_the_top(tool.parameters, f"{place}/parameters", notes, unions=False)
    fields["parameters"], strict = strict_parameters(tool, parameters, mode, f"{place}/parameters", notes)
    return fields, strict


def _read(function: Schema, place: str, notes: Notes, *, strict: bool) -> ToolDefinition:
    unknown_fields(function, _FUNCTION, place, notes)
    return definition(function.get("name"), function.get("description"), function.get("parameters"), place, strict=strict)
