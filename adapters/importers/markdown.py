"""JSON to markdown and back, and any text of a transcript as neutral text: the public names of the modules beside this one."""

from __future__ import annotations

from adapters.importers.json_literals import NumberAsWritten, decode
from adapters.importers.markdown_reader import markdown_to_json
from adapters.importers.markdown_writer import json_to_markdown
from adapters.importers.neutral import neutral_text, tool_text

__all__ = ["NumberAsWritten", "decode", "json_to_markdown", "markdown_to_json", "neutral_text", "tool_text"]
