"""Tool definitions in whichever form they come, and in the form of each API that payloads are made for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from pydantic import ValidationError

from adapters.tool_definitions.anthropic import from_messages, to_messages
from adapters.tool_definitions.gemini import from_declarations, to_declarations
from adapters.tool_definitions.neutral import NeutralTools, Note, ToolDefinition, VendorTools
from adapters.tool_definitions.openai import from_chat, from_responses, to_chat, to_deepseek, to_responses
from graph.model.errors import InvalidField

WRITERS: Mapping[str, Callable[[Sequence[ToolDefinition]], VendorTools]] = {
    "openai.chat.completions": to_chat,
    "openai.responses": to_responses,
    "deepseek.chat.completions": to_deepseek,
    "anthropic.messages": to_messages,
    "google.generate_content": to_declarations,
}
"""By the name of an API, as answers say it."""


def read_tools(given: object) -> NeutralTools:
    """Definitions from a list, each told by its fields: the neutral form, or that of any vendor.

    Raises:
        InvalidField, TooLarge: it is no list of definitions, or one of them is none.
    """
    if not isinstance(given, list):
        raise InvalidField("Tools are a JSON list of definitions.", hint="Give the list itself, not an object around it.")
    tools: list[ToolDefinition] = []
    notes: list[Note] = []
    for number, item in enumerate(cast("list[object]", given)):
        found = _read(item, number)
        tools += found.tools
        notes += [note.model_copy(update={"place": f"/{number}{note.place.removeprefix('/0')}"}) for note in found.notes]
    return NeutralTools(tools, notes)


def _read(item: object, number: int) -> NeutralTools:
    one: list[object] = [item]
    fields = cast("dict[str, object]", item) if isinstance(item, dict) else {}
    if "function" in fields:
        return from_chat(one)
    if {"functionDeclarations", "function_declarations"} & fields.keys():
        declared = fields.get("functionDeclarations", fields.get("function_declarations"))
        return from_declarations(cast("list[object]", declared) if isinstance(declared, list) else [declared])
    if "input_schema" in fields:
        return from_messages(one)
    if {"parametersJsonSchema", "parameters_json_schema"} & fields.keys():
        return from_declarations(one)
    if "type" in fields:
        return from_responses(one)
    try:
        return NeutralTools([ToolDefinition.model_validate(item)], [])
    except ValidationError:
        raise InvalidField(
            "A definition is in no form that is known.", hint="Give name, description and parameters, or a vendor's own form."
        ).at(field=f"/{number}") from None
