"""Any server that takes Chat Completions, for models of which nothing else is known: `openai-compatible/` before the server's own model id.

Tokens are estimates. Operators who know more of their model say so in a profile of their own (docs/guide.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from adapters.chat_completions import ChatCompletions

API = "openai.chat.completions"


@dataclass(frozen=True, slots=True)
class OpenAICompatible(ChatCompletions):
    """The adapter of one profile of a compatible server."""

    api: ClassVar[str] = API
