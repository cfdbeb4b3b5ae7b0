"""Tools in one neutral form, and to each vendor's and back. What a vendor cannot be told is adapted or noted, never dropped in silence."""

from __future__ import annotations

from adapters.tool_definitions.anthropic import from_messages, to_messages
from adapters.tool_definitions.gemini import from_declarations, to_declarations
from adapters.tool_definitions.neutral import CODES, NeutralTools, Note, ToolDefinition, VendorTools
from adapters.tool_definitions.openai import from_chat, from_responses, to_chat, to_deepseek, to_responses

__all__ = [
    "CODES",
    "NeutralTools",
    "Note",
    "ToolDefinition",
    "VendorTools",
    "from_chat",
    "from_declarations",
    "from_messages",
    "from_responses",
    "to_chat",
    "to_declarations",
    "to_deepseek",
    "to_messages",
    "to_responses",
]
