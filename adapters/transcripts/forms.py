"""The vendors' forms of a transcript by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

from pydantic import JsonValue

from adapters.transcripts.anthropic_messages import AnthropicMessages
from adapters.transcripts.deepseek import DEEPSEEK
from adapters.transcripts.gemini import Gemini
from adapters.transcripts.model import Turn, Written
from adapters.transcripts.openai_chat import OpenAIChat
from adapters.transcripts.openai_responses import OpenAIResponses


class Form(Protocol):
    """One vendor's form: its requests and answers as turns, and turns as the fields of a request."""

    @property
    def name(self) -> str:
        """As the command names it."""
        ...

    def messages(self, request: JsonValue, response: JsonValue) -> list[JsonValue]:
        """All that was said, in the vendor's own form, in order. What is missing or of another form gives nothing."""
        ...

    def turns(self, messages: Sequence[JsonValue], notes: Counter[str]) -> list[Turn]:
        """The messages as turns; ``notes`` counts what had to be changed. Raises Malformed, with the position of the message."""
        ...

    def write(self, turns: Sequence[Turn], *, model: str | None = None) -> Written:
        """The turns as the fields of a request that the vendor takes, for ``model`` where its models differ."""
        ...


_ALL: Final[tuple[Form, ...]] = (OpenAIChat(), OpenAIResponses(), AnthropicMessages(), Gemini(), DEEPSEEK)
FORMS: Final[dict[str, Form]] = {form.name: form for form in _ALL}
"""Every form by its name."""
