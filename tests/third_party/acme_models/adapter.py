"""How Acme's models are asked: rules, recorded context and the question are three fields of one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from adapters.compose import Composed
from adapters.family_adapter import FamilyAdapter, Said
from adapters.passages import Passage


@dataclass(frozen=True, slots=True)
class AcmeGenerate(FamilyAdapter):
    """The adapter of one Acme model."""

    api: ClassVar[str] = "acme.generate"

    def say(self, model: str, composed: Composed) -> Said:
        rules, context = self.instructions(composed), self.evidence(composed)
        payload: dict[str, Any] = {"model": model, "rules": rules.text, "context": context.text}
        passages = [rules, context]
        if composed.question is not None:
            payload["question"] = composed.question
            passages.append(Passage(composed.question))
        return Said(payload, passages, self.profile.framing.request)
