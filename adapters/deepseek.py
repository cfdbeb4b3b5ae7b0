"""DeepSeek, whose API is like Chat Completions: a system turn, then user turns as one.

V4 asks for ``reasoning_content`` on every turn with a tool call, V3 refuses it; the profile says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from adapters.chat_completions import ChatCompletions

API = "deepseek.chat.completions"


@dataclass(frozen=True, slots=True)
class DeepSeek(ChatCompletions):
    """The adapter of one DeepSeek profile."""

    api: ClassVar[str] = API
