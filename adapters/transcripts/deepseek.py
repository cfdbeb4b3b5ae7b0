"""DeepSeek's chat: OpenAI's form with ``reasoning_content``, and without files.

V4 answers 400 when ``reasoning_content`` is missing on a turn that calls a tool, so such a turn always has it.
"""

from __future__ import annotations

from typing import Final

from adapters.transcripts.openai_chat import OpenAIChat

DEEPSEEK: Final = OpenAIChat("deepseek", reasoning=True, files=False)
