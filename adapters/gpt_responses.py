"""GPT and the o-series through Responses: policy and constraints as ``instructions``, evidence and question as items of the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from adapters.compose import Composed
from adapters.family_adapter import FamilyAdapter, Said
from adapters.pairs import NativePair
from adapters.passages import Passage

API = "openai.responses"


@dataclass(frozen=True, slots=True)
class GptResponses(FamilyAdapter):
    """The adapter of one GPT profile for Responses.

    Items of native pairs carry no ids of their own: with one, the API looks for the reasoning item that it made before it.
    """

    api: ClassVar[str] = API

    def say(self, model: str, composed: Composed) -> Said:
        instructions, evidence = self.instructions(composed), self.evidence(composed)
        texts = [evidence]
        items: list[dict[str, Any]] = [_message("user", evidence.text)]
        for pair in composed.pairs:
            items += _pair(pair)
        if composed.question is not None:
            texts.append(Passage(composed.question))
            items.append(_message("user", composed.question))
        payload: dict[str, Any] = {"model": model, "instructions": instructions.text, "input": items}
        if composed.cache_name is not None and self.profile.cache.marks == "key":
            payload["prompt_cache_key"] = composed.cache_name
        framing = self.profile.framing
        # The instructions are framed as one message more.
        messages = len(texts) + 1
        frame, uncertain = self.pair_frame(composed.pairs)
        frame += framing.request + messages * (framing.message + (1 if framing.roles else 0))
        return Said(payload, [instructions, *texts, *self.pair_passages(composed.pairs)], frame, uncertain)


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def _pair(pair: NativePair) -> list[dict[str, Any]]:
    said = [_message("assistant", pair.text.text)] if pair.text.text else []
    return [
        *said,
        {"type": "function_call", "call_id": pair.call_id, "name": pair.name, "arguments": pair.arguments_text},
        {"type": "function_call_output", "call_id": pair.call_id, "output": pair.output.text},
    ]
