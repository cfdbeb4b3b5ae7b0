"""The form of chat completions: turns with roles. OpenAI's own, and what other vendors and servers made like it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adapters.compose import Composed
from adapters.family_adapter import BETWEEN_TEXTS, FamilyAdapter, Said
from adapters.pairs import NativePair
from adapters.passages import Passage, joined

NO_REASONING = "(The reasoning was not recorded.)"
"""Stands where a vendor asks for the reasoning of a call and the agent said nothing with it."""


@dataclass(frozen=True, slots=True)
class _Turns:
    """Turns as they are gathered. Where roles must alternate, turns of one role become one."""

    alternating: bool
    messages: list[tuple[str, list[Passage]]] = field(default_factory=list[tuple[str, list[Passage]]])

    def add(self, role: str, passage: Passage) -> None:
        if self.alternating and self.messages and self.messages[-1][0] == role:
            self.messages[-1][1].append(passage)
        else:
            self.messages.append((role, [passage]))

    def close(self) -> list[tuple[str, Passage]]:
        return [(role, joined(passages, BETWEEN_TEXTS)) for role, passages in self.messages]


@dataclass(frozen=True, slots=True)
class ChatCompletions(FamilyAdapter):
    """Policy and constraints in the profile's role, evidence as user, then native pairs, the question last.

    After an assistant's turn with a call comes the tool's turn with its result, and nothing between.
    """

    def say(self, model: str, composed: Composed) -> Said:
        alternating = self.profile.places.alternating
        before, after = _Turns(alternating), _Turns(alternating)
        before.add(self.profile.instruction_role, self.instructions(composed))
        before.add("user", self.evidence(composed))
        if composed.question is not None:
            (after if composed.pairs else before).add("user", Passage(composed.question))
        first, last = before.close(), after.close()
        messages: list[dict[str, Any]] = [{"role": role, "content": passage.text} for role, passage in first]
        for pair in composed.pairs:
            messages += self._pair(pair)
        messages += [{"role": role, "content": passage.text} for role, passage in last]
        framing = self.profile.framing
        count = self.counter.count
        frame, uncertain = self.pair_frame(composed.pairs)
        frame += framing.request + sum(framing.message + (count(role) if framing.roles else 0) for role, _ in (*first, *last))
        payload: dict[str, Any] = {"model": model, "messages": messages}
        if composed.cache_name is not None and self.profile.cache.marks == "key":
            payload["prompt_cache_key"] = composed.cache_name
        passages = [passage for _, passage in (*first, *last)]
        return Said(payload, [*passages, *self.pair_passages(composed.pairs)], frame, uncertain)

    def _pair(self, pair: NativePair) -> list[dict[str, Any]]:
        rules = self.profile.pairs
        turn: dict[str, Any] = {"role": "assistant", "content": pair.text.text}
        if rules is not None and rules.reasoning:
            # What the agent said with a call is its reason for it, as far as that is known.
            turn |= {"content": "", "reasoning_content": pair.text.text or NO_REASONING}
        function = {"name": pair.name, "arguments": pair.arguments_text}
        turn["tool_calls"] = [{"id": pair.call_id, "type": "function", "function": function}]
        return [turn, {"role": "tool", "tool_call_id": pair.call_id, "content": pair.output.text}]
