"""Gemini through generateContent, as its REST API takes it: policy and constraints as ``systemInstruction``, evidence and question as user.

Native pairs: a model turn with one ``functionCall``, then a user turn with one ``functionResponse``, whose response is an object; the question is
a turn of its own after them, since a turn of responses holds nothing else. The model's id belongs into the address, not into the body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from adapters.compose import Composed
from adapters.family_adapter import FamilyAdapter, Said
from adapters.pairs import NativePair
from adapters.passages import Passage

API = "google.generate_content"


@dataclass(frozen=True, slots=True)
class Gemini(FamilyAdapter):
    """The adapter of one Gemini profile."""

    api: ClassVar[str] = API

    def say(self, model: str, composed: Composed) -> Said:
        del model
        instructions, evidence = self.instructions(composed), self.evidence(composed)
        texts = [evidence]
        contents: list[dict[str, Any]] = [_turn("user", {"text": evidence.text})]
        for pair in composed.pairs:
            contents += self._pair(pair)
        if composed.question is not None:
            texts.append(Passage(composed.question))
            part = {"text": composed.question}
            if composed.pairs:
                contents.append(_turn("user", part))
            else:
                contents[0]["parts"].append(part)
        payload = {"systemInstruction": {"parts": [{"text": instructions.text}]}, "contents": contents}
        framing = self.profile.framing
        frame, uncertain = self.pair_frame(composed.pairs)
        frame += framing.request + framing.system + framing.message * len(texts)
        return Said(payload, [instructions, *texts, *self.pair_passages(composed.pairs)], frame, uncertain)

    def _pair(self, pair: NativePair) -> list[dict[str, Any]]:
        call: dict[str, Any] = {"functionCall": {"name": pair.name, "args": pair.arguments}}
        rules = self.profile.pairs
        if rules is not None and rules.signature is not None:
            call["thoughtSignature"] = rules.signature
        said = [{"text": pair.text.text}] if pair.text.text else []
        answer = {"functionResponse": {"name": pair.name, "response": {"output": pair.output.text}}}
        return [_turn("model", *said, call), _turn("user", answer)]


def _turn(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}
