"""GPT and the o-series through Chat Completions: policy and constraints as developer (before o1: system), evidence as user, question last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from adapters.chat_completions import ChatCompletions

API = "openai.chat.completions"


@dataclass(frozen=True, slots=True)
class GptChat(ChatCompletions):
    """The adapter of one GPT profile for Chat Completions."""

    api: ClassVar[str] = API
